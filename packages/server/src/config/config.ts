import type { ServerPolicy } from "../rules/policies.ts";
import { hashToken, SERVICE_KEY_FORM } from "../rules/tokens.ts";
import { type Database, type Nats, readDatabase, readNats } from "./connections.ts";
import { type Environment, refuseUnknown } from "./environment.ts";
import { ConfigError } from "./error.ts";
import { type FileStorage, readFileStorage } from "./file-storage.ts";
import { readNamedFile } from "./files.ts";
import { type Limits, readLimits } from "./limits.ts";
import { parseMasterKeys } from "./master-keys.ts";
import { type OidcSettings, readOidc } from "./oidc.ts";
import { readPolicy } from "./policy.ts";
import { type Provider, readOperatorKeys, readProviders } from "./providers.ts";
import { readSwitch } from "./switch.ts";
import { type OperatorToolServer, readToolServers } from "./tool-servers.ts";

export type { Database, Limits, Nats, Provider };
export { ConfigError };

/** Without codes, `invite` uses a code that is generated once and stored in the data folder. */
export type SignUpPolicy =
  | { kind: "open" }
  | { kind: "closed" }
  | { kind: "invite"; codes: string[] };

export interface Config {
  host: string;
  port: number;
  /** The address of a separate listener for metrics. Null: they are at `/metrics` of the service. */
  metrics: { host: string; port: number } | null;
  dataDir: string;
  /** Null: SQLite in the data folder. */
  database: Database | null;
  /** Null: there is only this node. */
  nats: Nats | null;
  signUp: SignUpPolicy;
  oidc: OidcSettings | null;
  /** Whether people may sign in and up with a password. */
  passwordSignIn: boolean;
  /** Usernames of operators, besides those that `parley operators` has added. */
  operators: readonly string[];
  /** What people may do, unless something else is set for a person. */
  policy: ServerPolicy;
  /** The hash of a service key that a file gives. */
  serviceKeyHash: string | null;
  /** Days for which entries of the audit log are kept. */
  auditDays: number;
  /** Days after which messages are deleted. Null: never. */
  retentionDays: number | null;
  /** Where the bytes of files are kept. Null: the server takes no files. */
  files: FileStorage | null;
  providers: ReadonlyMap<string, Provider>;
  /** API keys that the operator pays for, by provider. */
  operatorKeys: ReadonlyMap<string, string>;
  /** Tool servers that are offered to everybody. They have secrets. */
  toolServers: readonly OperatorToolServer[];
  /** Whether sandbox keys are accepted, which the built-in model answers. */
  sandbox: boolean;
  /** Newest first. Null: the keys are in a file in the data folder. */
  masterKeys: readonly Buffer[] | null;
  limits: Limits;
  /** Number of trusted reverse proxies that append to X-Forwarded-For. */
  proxies: number;
  /** Whether addresses that people supply may lead to private networks, also by plain http. */
  allowPrivateAddresses: boolean;
  /** Web origins allowed besides the service's own; `*` for any. */
  origins: readonly string[];
  logLevel: string;
  /**
   * Whether mistakes of the server become internal errors: a failure that the operation's contract does
   * not declare, and a unit that changes a conversation it does not own.
   */
  strictErrors: boolean;
}

export function readConfig(variables: Record<string, string | undefined> = process.env): Config {
  refuseUnknown(variables);
  const env: Environment = variables;
  const providers = readProviders(env.PARLEY_PROVIDERS);
  const sandbox = readSwitch("PARLEY_SANDBOX", env.PARLEY_SANDBOX ?? "on");
  const dataDir = env.PARLEY_DATA || "./data";
  const config: Config = {
    host: env.HOST || "127.0.0.1",
    port: readPort("PORT", env.PORT ?? "8080"),
    metrics: readMetrics(env),
    dataDir,
    database: readDatabase(env.DATABASE_URL),
    nats: readNats(env),
    signUp: readSignUp(env.PARLEY_SIGNUP),
    oidc: readOidc(env),
    passwordSignIn: readSwitch("PARLEY_PASSWORD_SIGN_IN", env.PARLEY_PASSWORD_SIGN_IN ?? "on"),
    operators: readOperators(env.PARLEY_OPERATORS),
    policy: readPolicy(env.PARLEY_POLICY),
    serviceKeyHash: readServiceKey(env.PARLEY_SERVICE_KEY_FILE),
    auditDays: readDays("PARLEY_AUDIT_DAYS", env.PARLEY_AUDIT_DAYS ?? "90"),
    retentionDays: env.PARLEY_RETENTION_DAYS
      ? readDays("PARLEY_RETENTION_DAYS", env.PARLEY_RETENTION_DAYS)
      : null,
    files: readFileStorage(env, {
      dataFolder: dataDir,
      isShared: Boolean(env.NATS_URL),
    }),
    providers,
    operatorKeys: readOperatorKeys(providers, sandbox),
    toolServers: readToolServers(env.PARLEY_TOOL_SERVERS),
    sandbox,
    masterKeys: readMasterKeys(env.PARLEY_MASTER_KEY),
    limits: readLimits(env.PARLEY_LIMITS),
    proxies: readProxies(env.PARLEY_PROXIES),
    allowPrivateAddresses: readPrivateAddresses(env.PARLEY_PRIVATE_ADDRESSES),
    origins: readOrigins(env.PARLEY_ORIGINS),
    logLevel: readLogLevel(env.PARLEY_LOG),
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

function readPort(name: string, value: string): number {
  const port = Number(value);
  if (value.trim() === "" || !Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new ConfigError(`${name} must be a number from 0 to 65535, not "${value}".`);
  }
  return port;
}

function readMetrics(env: Environment): Config["metrics"] {
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

function readOperators(value = ""): string[] {
  const names = value.split(",").map((name) => name.trim().toLowerCase());
  return names.filter(Boolean).map((name) => {
    if (/^[a-z0-9_]{2,32}$/.test(name)) return name;
    throw new ConfigError(
      `PARLEY_OPERATORS must list usernames of people, comma-separated, not "${name}".`,
    );
  });
}

function readServiceKey(file: string | undefined): string | null {
  if (!file) return null;
  const key = readNamedFile("PARLEY_SERVICE_KEY_FILE", file).trim();
  if (SERVICE_KEY_FORM.test(key)) return hashToken(key);
  // The content is a secret, so the error does not repeat it.
  throw new ConfigError(
    "PARLEY_SERVICE_KEY_FILE must name a file with one key: pls_ and at least 32 letters, digits, dashes or underscores.",
  );
}

function readDays(name: string, value: string): number {
  const days = Number(value);
  if (Number.isInteger(days) && days >= 1 && days <= 3650) return days;
  throw new ConfigError(`${name} must be a whole number of days from 1 to 3650, not "${value}".`);
}

function readMasterKeys(value: string | undefined): Config["masterKeys"] {
  if (!value) return null;
  const keys = parseMasterKeys(value);
  // The value is a secret, so the error does not repeat it.
  if (!keys) {
    throw new ConfigError(
      "PARLEY_MASTER_KEY must be 32 bytes in base64, or several, comma-separated.",
    );
  }
  return keys;
}

function readProxies(value = "0"): number {
  if (/^\d$/.test(value)) return Number(value);
  throw new ConfigError(`PARLEY_PROXIES must be a number from 0 to 9, not "${value}".`);
}

function readPrivateAddresses(value = "refuse"): boolean {
  if (value === "refuse" || value === "allow") return value === "allow";
  throw new ConfigError(`PARLEY_PRIVATE_ADDRESSES must be refuse or allow, not "${value}".`);
}

function readOrigins(value = ""): string[] {
  const origins = value.split(",").map((origin) => origin.trim());
  return origins.filter(Boolean).map((origin) => {
    if (origin === "*") return origin;
    if (!URL.canParse(origin) || new URL(origin).origin !== origin) {
      throw new ConfigError(
        `PARLEY_ORIGINS must list origins such as https://chat.example.com, not "${origin}".`,
      );
    }
    return origin;
  });
}

function readLogLevel(value = "info"): string {
  const levels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];
  if (levels.includes(value)) return value;
  throw new ConfigError(`PARLEY_LOG must be one of ${levels.join(", ")}, not "${value}".`);
}
