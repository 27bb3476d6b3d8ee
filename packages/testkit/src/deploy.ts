import { readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dir, "../../..");
export const read = (file: string) => readFileSync(join(ROOT, file), "utf8");

const sources = [...new Bun.Glob("packages/server/src/config/*.ts").scanSync(ROOT)];
/** The environment variables that the program and its runtime read. */
const settings = new Set([
  ...sources.flatMap((file) => read(file).match(/\b[A-Z]+(?:_[A-Z]+)*\b/g) ?? []),
  "BUN_CONFIG_MAX_HTTP_REQUESTS",
]);

/** The subset of the names that nothing reads. */
export const unknown = (names: Iterable<string>) =>
  [...names].filter((name) => !settings.has(name));

/** Whether an image has a fixed version, or is built locally. */
export const isPinned = (image: string) =>
  /:\d+\.\d+[\w.-]*$|:local$|debian\d+:nonroot$/.test(image);

/** Example values for all secrets of an installation. */
export const secrets = {
  POSTGRES_PASSWORD: "0123e4",
  NATS_PASSWORD: "0123e5",
  NATS_CLUSTER_PASSWORD: "0123e6",
  PARLEY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
  PARLEY_SIGNUP: "invite:come-in",
  AWS_ACCESS_KEY_ID: "0123e7",
  AWS_SECRET_ACCESS_KEY: "0123e8",
};

/** Substitutes variables the way Compose does. */
export const withVariables = (value: string, variables: Record<string, string>): string =>
  value.replace(
    /\$\{(\w+)(?::(?:-([^}]*)|\?[^}]*))?\}/g,
    (_, name: string, otherwise: string | undefined) => variables[name] ?? otherwise ?? "",
  );
