import { readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dir, "../../..");
export const read = (file: string) => readFileSync(join(ROOT, file), "utf8");

/** The names that the program reads, and the one that its runtime does. */
const settings = new Set([
  ...(read("packages/server/src/config.ts").match(/\b[A-Z]+(?:_[A-Z]+)*\b/g) ?? []),
  "BUN_CONFIG_MAX_HTTP_REQUESTS",
]);

/** Those of the names that nothing reads. */
export const unknown = (names: Iterable<string>) =>
  [...names].filter((name) => !settings.has(name));

/** A version, not a name that means another image tomorrow; ours is made here. */
export const isPinned = (image: string) =>
  /:\d+\.\d+[\w.-]*$|:local$|debian\d+:nonroot$/.test(image);

/** Such as an operator would make, for everything that an installation asks for. */
export const secrets = {
  POSTGRES_PASSWORD: "0123e4",
  NATS_PASSWORD: "0123e5",
  NATS_CLUSTER_PASSWORD: "0123e6",
  PARLEY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
  PARLEY_SIGNUP: "invite:come-in",
};

/** A value as Compose reads it, with variables put in. */
export const withVariables = (value: string, variables: Record<string, string>): string =>
  value.replace(
    /\$\{(\w+)(?::(?:-([^}]*)|\?[^}]*))?\}/g,
    (_, name: string, otherwise: string | undefined) => variables[name] ?? otherwise ?? "",
  );
