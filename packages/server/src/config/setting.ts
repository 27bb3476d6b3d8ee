import { existsSync, readFileSync } from "node:fs";
import { suggestion } from "../rules/similar-names.ts";

/** An invalid setting. The message is the sentence that the operator sees. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

const USER = `user ${process.getuid?.() ?? ""}`;

const FILE_PROBLEMS: readonly [code: RegExp, problem: string][] = [
  [/^ENOENT/, "it does not exist: correct the path, or create it"],
  [/^ENOTDIR/, "a part of the path is not a folder: correct the path"],
  [/^EISDIR/, "it is a folder: name a file"],
  [/^(EACCES|EPERM)/, `${USER}, who runs this, may not use it: change its owner or its mode`],
  [/^EROFS/, "its file system is read-only: mount it writable, or choose another place"],
  [/^(ENOSPC|SQLITE_FULL)/, "its disk is full: free space"],
  [/^SQLITE_IOERR/, "its disk is full or fails: free space, or check the disk"],
  [/^SQLITE_READONLY/, "it is read-only: change its owner, its mode or the mount of its disk"],
  [/^SQLITE_(NOTADB|CORRUPT)/, 'it is damaged: run "parley doctor", and restore a backup'],
  [/^SQLITE_CANTOPEN/, "it cannot be opened: check that it is a file, its owner and its mode"],
];

/** What is wrong with a file, folder or SQLite database, and the remedy, as the end of a sentence. */
export function fileProblem(error: unknown): string {
  const { code = "", message = String(error) } = error as { code?: string; message?: string };
  const known = FILE_PROBLEMS.find(([pattern]) => pattern.test(code));
  return known?.[1] ?? message.replace(/\.$/, "");
}

export function readNamedFile(setting: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new ConfigError(
      `${setting} names "${file}", which cannot be read: ${fileProblem(error)}.`,
    );
  }
}

/** Reads a file with a secret, which the error does not repeat. */
export function readSecretFile(setting: string, file: string, form: RegExp, what: string): string {
  const secret = readNamedFile(setting, file).trim();
  if (form.test(secret)) return secret;
  throw new ConfigError(`${setting} must name a file with one ${what}.`);
}

/** Parses a setting that is JSON, or the path of a file with it. Errors repeat no value: it may have secrets. */
export function readJson(setting: string, value: string, kind: "object" | "list"): unknown {
  if (value.trimStart().startsWith(kind === "object" ? "{" : "[")) return parseJson(setting, value);
  if (existsSync(value)) return parseJson(setting, readNamedFile(setting, value));
  const isJson = /^\s*[[{]/.test(value);
  const problem = isJson ? "" : " or the path of a file with one, and no file has this path";
  throw new ConfigError(`${setting} must be a JSON ${kind}${problem}.`);
}

export function parseJson(setting: string, value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    // What the parser says may quote a secret.
    throw new ConfigError(`${setting} is not valid JSON: check its quotes, commas and brackets.`);
  }
}

export function readChoice(name: string, value: string, choices: readonly string[]): string {
  if (choices.includes(value)) return value;
  const allowed = choices.length > 2 ? `one of ${choices.join(", ")}` : choices.join(" or ");
  throw new ConfigError(`${name} must be ${allowed}, not "${value}".`);
}

export const readSwitch = (name: string, value: string): boolean =>
  readChoice(name, value, ["on", "off"]) === "on";

/** Parses a setting that is a list with commas in between. `what` says what its items must be. */
export function readList(
  name: string,
  value: string,
  isValid: (item: string) => boolean,
  what: string,
): readonly string[] {
  const items = value.split(",").flatMap((item) => item.trim() || []);
  const wrong = items.find((item) => !isValid(item));
  if (wrong === undefined) return items;
  throw new ConfigError(`${name} must list ${what}, not "${wrong}".`);
}

/** Every variable that `config.ts` and the parsers beside it read. Reading another one is a type error. */
const SETTINGS = [
  ["HOST", "PORT", "PARLEY_PROXIES", "PARLEY_METRICS_HOST", "PARLEY_METRICS_PORT", "PARLEY_LOG"],
  ["DATABASE_URL", "PARLEY_DATA", "PARLEY_AUDIT_DAYS", "PARLEY_RETENTION_DAYS", "PARLEY_LIMITS"],
  ["NATS_URL", "NATS_TLS", "NATS_CREDS", "NATS_CA", "NATS_CERT", "NATS_KEY"],
  ["PARLEY_FILES", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"],
  ["PARLEY_SIGNUP", "PARLEY_PASSWORD_SIGN_IN", "PARLEY_OPERATORS", "PARLEY_POLICY"],
  ["PARLEY_OIDC_ISSUER", "PARLEY_OIDC_NAME", "PARLEY_OIDC_SCOPES", "PARLEY_OIDC_USERNAME_CLAIM"],
  ["PARLEY_OIDC_AUDIENCE", "PARLEY_OIDC_CLIENT_ID", "PARLEY_OIDC_CLIENT_SECRET_FILE"],
  ["PARLEY_PROVIDERS", "PARLEY_SANDBOX", "PARLEY_TOOL_SERVERS", "PARLEY_PRIVATE_ADDRESSES"],
  ["PARLEY_MASTER_KEY", "PARLEY_SERVICE_KEY_FILE", "PARLEY_ORIGINS", "PARLEY_STRICT_ERRORS"],
] as const;

export type Environment = {
  readonly [Name in (typeof SETTINGS)[number][number]]?: string | undefined;
};

const PREFIX = "PARLEY_";
/** Variables of the deployment files, and of programs that call Parley. */
const OF_OTHERS = ["PARLEY_IMAGE", "PARLEY_SERVICE_KEY", "PARLEY_URL", "PARLEY_WEBHOOK_SECRET"];
const OF_TESTS = "PARLEY_TEST_";
/** Kubernetes and Docker add such variables for a service with the name `parley`. */
const OF_A_SERVICE = /_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_\w+)?$/;
const SERVICE_ADDRESS = /^(tcp|udp|sctp):\/\//;

/** Throws for a misspelled setting: without its real one, a server may be open where it should be closed. */
export function refuseUnknown(variables: Readonly<Record<string, string | undefined>>): void {
  const known = new Set<string>(SETTINGS.flat());
  const unknown = Object.entries(variables).find(
    ([name, value = ""]) =>
      name.toUpperCase().startsWith(PREFIX) &&
      !known.has(name) &&
      !OF_OTHERS.includes(name) &&
      !name.startsWith(OF_TESTS) &&
      !OF_A_SERVICE.test(name) &&
      !SERVICE_ADDRESS.test(value),
  );
  if (!unknown) return;
  const [name] = unknown;
  const plain = name.toUpperCase().slice(PREFIX.length);
  const nearest = known.has(plain)
    ? ` Did you mean "${plain}"?`
    : plain && suggestion(name.toUpperCase(), [...known]);
  throw new ConfigError(`${name} is not a setting of Parley: correct or remove it.${nearest}`);
}
