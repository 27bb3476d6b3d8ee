import { hashToken, SERVICE_KEY_FORM } from "../rules/tokens.ts";
import { type Database, readDatabase, readNats } from "./connections.ts";
import { readFileStorage } from "./file-storage.ts";
import { type Limits, readLimits } from "./limits.ts";
import { parseMasterKeys } from "./master-keys.ts";
import { readOidc } from "./oidc.ts";
import { readPolicy } from "./policy.ts";
import { type Provider, readOperatorKeys, readProviders } from "./providers.ts";
import {
  ConfigError,
  type Environment,
  readChoice,
  readList,
  readSecretFile,
  readSwitch,
  refuseUnknown,
} from "./setting.ts";
import { readToolServers } from "./tool-servers.ts";

export type { Database, Limits, Provider };
export { ConfigError };

/** Without codes, `invite` uses a code that is generated once and stored in the data folder. */
export type SignUpPolicy =
  | { kind: "open" }
  | { kind: "closed" }
  | { kind: "invite"; codes: string[] };

export type Config = ReturnType<typeof readConfig>;

export function readConfig(variables: Record<string, string | undefined> = process.env) {
  refuseUnknown(variables);
  const env: Environment = variables;
  const providers = readProviders(env.PARLEY_PROVIDERS);
  /** Whether sandbox keys are accepted, which the built-in model answers. */
  const sandbox = readSwitch("PARLEY_SANDBOX", env.PARLEY_SANDBOX ?? "on");
  const dataDir = env.PARLEY_DATA || "./data";
  const config = {
    host: env.HOST || "127.0.0.1",
    port: readPort("PORT", env.PORT ?? "8080"),
    /** The address of a separate listener for metrics. Null: they are at `/metrics` of the service. */
    metrics: readMetrics(env),
    dataDir,
    /** Null: SQLite in the data folder. */
    database: readDatabase(env.DATABASE_URL),
    /** Null: there is only this node. */
    nats: readNats(env),
    signUp: readSignUp(env.PARLEY_SIGNUP),
    oidc: readOidc(env),
    /** Whether people may sign in and up with a password. */
    passwordSignIn: readSwitch("PARLEY_PASSWORD_SIGN_IN", env.PARLEY_PASSWORD_SIGN_IN ?? "on"),
    /** Usernames of operators, besides those that `parley operators` has added. */
    operators: readOperators(env.PARLEY_OPERATORS),
    /** What people may do, unless something else is set for a person. */
    policy: readPolicy(env.PARLEY_POLICY),
    /** The hash of a service key that a file gives. */
    serviceKeyHash: readServiceKey(env.PARLEY_SERVICE_KEY_FILE),
    /** Days for which entries of the audit log are kept. */
    auditDays: readDays("PARLEY_AUDIT_DAYS", env.PARLEY_AUDIT_DAYS ?? "90"),
    /** Days after which messages are deleted. Null: never. */
    retentionDays: env.PARLEY_RETENTION_DAYS
      ? readDays("PARLEY_RETENTION_DAYS", env.PARLEY_RETENTION_DAYS)
      : null,
    /** Where the bytes of files are kept. Null: the server takes no files. */
    files: readFileStorage(env, dataDir),
    providers,
    /** API keys that the operator pays for, by provider. */
    operatorKeys: readOperatorKeys(providers, sandbox),
    /** Tool servers that are offered to everybody. They have secrets. */
    toolServers: readToolServers(env.PARLEY_TOOL_SERVERS),
    sandbox,
    /** Newest first. Null: the keys are in a file in the data folder. */
    masterKeys: readMasterKeys(env.PARLEY_MASTER_KEY),
    limits: readLimits(env.PARLEY_LIMITS),
    /** Number of trusted reverse proxies that append to X-Forwarded-For. */
    proxies: readNumber("PARLEY_PROXIES", env.PARLEY_PROXIES ?? "0", [0, 9]),
    /** Whether addresses that people supply may lead to private networks, also by plain http. */
    allowPrivateAddresses: readPrivateAddresses(env.PARLEY_PRIVATE_ADDRESSES),
    /** Web origins allowed besides the service's own; `*` for any. */
    origins: readOrigins(env.PARLEY_ORIGINS),
    logLevel: readChoice("PARLEY_LOG", env.PARLEY_LOG ?? "info", LOG_LEVELS),
    /**
     * Whether mistakes of the server become internal errors: a failure that the operation's contract
     * does not declare, and a unit that changes a conversation it does not own.
     */
    strictErrors: readSwitch("PARLEY_STRICT_ERRORS", env.PARLEY_STRICT_ERRORS ?? "off"),
  };
  if (config.nats) checkShared(config);
  return config;
}

/** Settings that a single node can generate or leave out must be given, and equal, on several nodes. */
function checkShared({ database, masterKeys, signUp }: Config): void {
  if (!database) {
    throw new ConfigError("NATS_URL is for several nodes, which need DATABASE_URL as well.");
  }
  if (!masterKeys) {
    throw new ConfigError(
      "PARLEY_MASTER_KEY must be given, the same on every node, with NATS_URL.",
    );
  }
  if (signUp.kind === "invite" && signUp.codes.length === 0) {
    throw new ConfigError("PARLEY_SIGNUP must be invite:<code> on every node, with NATS_URL.");
  }
}

const readPort = (name: string, value: string) => readNumber(name, value, [0, 65_535]);

const readDays = (name: string, value: string) =>
  readNumber(name, value, [1, 3650], "a whole number of days");

function readNumber(
  name: string,
  value: string,
  [min, max]: readonly [min: number, max: number],
  what = "a number",
): number {
  const number = /^\s*\d+\s*$/.test(value) ? Number(value) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new ConfigError(`${name} must be ${what} from ${min} to ${max}, not "${value}".`);
}

function readMetrics(env: Environment) {
  if (!env.PARLEY_METRICS_PORT) return null;
  return {
    host: env.PARLEY_METRICS_HOST || "127.0.0.1",
    port: readPort("PARLEY_METRICS_PORT", env.PARLEY_METRICS_PORT),
  };
}

function readSignUp(value = "open"): SignUpPolicy {
  if (value === "open" || value === "closed") return { kind: value };
  const [kind, list] = value.split(/:(.*)/s);
  const codes = list?.split(",").filter(Boolean) ?? [];
  if (kind === "invite" && (list === undefined || codes.length > 0)) return { kind, codes };
  throw new ConfigError(
    `PARLEY_SIGNUP must be open, closed, invite or invite:<code>[,<code>…], not "${value}".`,
  );
}

function readOperators(value = "") {
  const isUsername = (name: string) => /^[a-z0-9_]{2,32}$/.test(name);
  const what = "usernames of people, comma-separated";
  return readList("PARLEY_OPERATORS", value.toLowerCase(), isUsername, what);
}

function readServiceKey(file: string | undefined): string | null {
  if (!file) return null;
  const what = "key: pls_ and at least 32 letters, digits, dashes or underscores";
  return hashToken(readSecretFile("PARLEY_SERVICE_KEY_FILE", file, SERVICE_KEY_FORM, what));
}

function readMasterKeys(value: string | undefined): readonly Buffer[] | null {
  if (!value) return null;
  const keys = parseMasterKeys(value);
  if (keys) return keys;
  // The value is a secret, so the error does not repeat it.
  throw new ConfigError(
    "PARLEY_MASTER_KEY must be 32 bytes in base64, or several, comma-separated.",
  );
}

function readOrigins(value = "") {
  const isOrigin = (origin: string) => origin === "*" || URL.parse(origin)?.origin === origin;
  return readList("PARLEY_ORIGINS", value, isOrigin, "origins such as https://chat.example.com");
}

const readPrivateAddresses = (value = "refuse") =>
  readChoice("PARLEY_PRIVATE_ADDRESSES", value, ["refuse", "allow"]) === "allow";

const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];

export const urlOf = (host: string, port: number | undefined) =>
  `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
