import { existsSync, readFileSync } from "node:fs";
import { z } from "zod";
import { isSafeAddress } from "./security/safe-address.ts";
import { parseMasterKeys } from "./security/vault.ts";

/** A setting that cannot be used; its message is the one sentence the operator sees. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

const defaultLimits = {
  frame_bytes: 262_144,
  page_size: 100,
  group_participants: 1000,
  sockets_per_user: 20,
  messages_per_second: 20,
  message_burst: 100,
  operations_per_second: 100,
  operation_burst: 300,
  signups_per_hour: 1000,
  searches_per_second: 10,
  search_burst: 30,
  reactions_per_message: 50,
  reactions_per_person: 20,
  backlog_bytes: 4_194_304,
  backlog_total_bytes: 268_435_456,
  idle_seconds: 60,
  session_days: 90,
};
export type Limits = typeof defaultLimits;

/** The smallest sensible value of each, and the largest the runtime takes. Zero lifts a rate. */
const limitRanges: Record<keyof Limits, readonly [number, number]> = {
  frame_bytes: [1024, 64 * 1024 * 1024],
  page_size: [1, 1000],
  group_participants: [2, 100_000],
  sockets_per_user: [1, 1_000_000],
  messages_per_second: [0, 1_000_000],
  message_burst: [1, 1_000_000],
  operations_per_second: [0, 1_000_000],
  operation_burst: [1, 1_000_000],
  signups_per_hour: [0, 1_000_000],
  searches_per_second: [0, 1_000_000],
  search_burst: [1, 1_000_000],
  reactions_per_message: [1, 10_000],
  reactions_per_person: [1, 10_000],
  backlog_bytes: [65_536, 1024 * 1024 * 1024],
  backlog_total_bytes: [65_536, 1024 * 1024 * 1024 * 1024],
  idle_seconds: [1, 960],
  session_days: [1, 3650],
};

const Provider = z.strictObject({
  display_name: z.string().min(1).max(64),
  protocol: z.enum(["anthropic", "openai"]),
  base_url: z.url({ protocol: /^https?$/ }),
  model: z.string().min(1),
  max_output_tokens: z.int().positive().default(4096),
  context_tokens: z.int().positive().default(100_000),
});
export type Provider = z.infer<typeof Provider>;

const PROVIDER_ID = /^[a-z][a-z0-9_-]{1,31}$/;

const defaultProviders: Record<string, z.input<typeof Provider>> = {
  claude: {
    display_name: "Claude",
    protocol: "anthropic",
    base_url: "https://api.anthropic.com",
    model: "claude-sonnet-4-5",
  },
  gpt: {
    display_name: "GPT",
    protocol: "openai",
    base_url: "https://api.openai.com/v1",
    model: "gpt-5",
  },
};

/** Invitation without codes: one is made and kept beside the data. */
export type SignUpPolicy =
  | { kind: "open" }
  | { kind: "closed" }
  | { kind: "invite"; codes: string[] };

/** PostgreSQL in place of the embedded store. */
export interface Database {
  readonly url: string;
  readonly tls: false | { readonly ca?: string; readonly rejectUnauthorized: boolean };
}

/** What nodes hear each other by. */
export interface Nats {
  readonly servers: readonly string[];
  readonly credentialsFile?: string | undefined;
  /** Set where the connection has to be encrypted. */
  readonly tls?: NatsTls | undefined;
}

interface NatsTls {
  readonly caFile?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

export interface Config {
  host: string;
  port: number;
  /** Where Prometheus reads, apart from everything else; null: `/metrics` of the service. */
  metrics: { host: string; port: number } | null;
  dataDir: string;
  /** Null: SQLite, in the data folder. */
  database: Database | null;
  /** Null: this node is the only one. */
  nats: Nats | null;
  signUp: SignUpPolicy;
  oidc: { issuer: string; audience: string; usernameClaim: string } | null;
  providers: ReadonlyMap<string, Provider>;
  /** Whether test keys are answered by the built-in model. */
  sandbox: boolean;
  /** Newest first; null: a key of the installation's own, kept beside the data. */
  masterKeys: readonly Buffer[] | null;
  limits: Limits;
  /** Number of trusted reverse proxies that append to X-Forwarded-For. */
  proxies: number;
  /** Web origins besides the service's own; `*` for any. */
  origins: readonly string[];
  logLevel: string;
  /** Whether a failure that the operation's contract does not declare becomes an internal error. */
  strictErrors: boolean;
}

type Environment = Record<string, string | undefined>;

export function readConfig(env: Environment = process.env): Config {
  const config: Config = {
    host: env.HOST || "127.0.0.1",
    port: readPort("PORT", env.PORT ?? "8080"),
    metrics: readMetrics(env),
    dataDir: env.PARLEY_DATA || "./data",
    database: readDatabase(env.DATABASE_URL),
    nats: readNats(env),
    signUp: readSignUp(env.PARLEY_SIGNUP),
    oidc: readOidc(env),
    providers: readProviders(env.PARLEY_PROVIDERS),
    sandbox: readSwitch("PARLEY_SANDBOX", env.PARLEY_SANDBOX ?? "on"),
    masterKeys: readMasterKeys(env.PARLEY_MASTER_KEY),
    limits: readLimits(env.PARLEY_LIMITS),
    proxies: readProxies(env.PARLEY_PROXIES),
    origins: readOrigins(env.PARLEY_ORIGINS),
    logLevel: readLogLevel(env.PARLEY_LOG),
    strictErrors: readSwitch("PARLEY_STRICT_ERRORS", env.PARLEY_STRICT_ERRORS ?? "off"),
  };
  if (config.nats) checkShared(config);
  return config;
}

/** What every node needs for itself on one machine has to be the same on all of several. */
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

/** Whether what is sent there stays on this machine. */
const isLocal = ({ hostname }: URL) =>
  /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);

const SSL_MODES = ["disable", "require", "verify-ca", "verify-full"];

/** The address may hold a password: no sentence repeats it. */
function readDatabase(value: string | undefined): Config["database"] {
  if (!value) return null;
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url || !/^postgres(ql)?:$/.test(url.protocol) || url.hostname === "") {
    throw new ConfigError("DATABASE_URL must be such as postgres://user:password@host:5432/name.");
  }
  const mode = url.searchParams.get("sslmode") ?? (isLocal(url) ? "disable" : "require");
  const ca = url.searchParams.get("sslrootcert");
  if (!SSL_MODES.includes(mode)) {
    throw new ConfigError(`DATABASE_URL: sslmode must be one of ${SSL_MODES.join(", ")}.`);
  }
  url.search = "";
  if (mode === "disable") return { url: url.href, tls: false };
  const rejectUnauthorized = mode !== "require";
  return {
    url: url.href,
    tls: { rejectUnauthorized, ...(ca !== null && { ca: readNamed("DATABASE_URL", ca) }) },
  };
}

function readNats(env: Environment): Config["nats"] {
  if (!env.NATS_URL) return null;
  const servers = env.NATS_URL.split(",").map((server) => server.trim());
  for (const server of servers) {
    const url = URL.canParse(server) ? new URL(server) : null;
    if (!url || !/^(nats|tls):$/.test(url.protocol) || url.hostname === "") {
      throw new ConfigError(
        "NATS_URL must be such as nats://host:4222, or several, comma-separated.",
      );
    }
  }
  const files = { caFile: env.NATS_CA, certFile: env.NATS_CERT, keyFile: env.NATS_KEY };
  for (const [name, file] of Object.entries({
    NATS_CREDS: env.NATS_CREDS,
    NATS_CA: files.caFile,
    NATS_CERT: files.certFile,
    NATS_KEY: files.keyFile,
  })) {
    if (file) readNamed(name, file);
  }
  const isEncrypted =
    readNatsTls(env.NATS_TLS) ?? !servers.every((server) => isLocal(new URL(server)));
  const tls = isEncrypted || Object.values(files).some(Boolean) ? files : undefined;
  return { servers, credentialsFile: env.NATS_CREDS || undefined, tls };
}

/** Undefined when it is not set: events then travel to other hosts encrypted, or not at all. */
function readNatsTls(value: string | undefined): boolean | undefined {
  if (!value) return undefined;
  if (value !== "on" && value !== "off") {
    throw new ConfigError(`NATS_TLS must be on or off, not "${value}".`);
  }
  return value === "on";
}

function readNamed(variable: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new ConfigError(`${variable} names "${file}", which cannot be read as a file.`);
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

function readOidc(env: Environment): Config["oidc"] {
  const issuer = env.PARLEY_OIDC_ISSUER;
  if (!issuer) return null;
  if (!isSafeAddress(issuer)) {
    throw new ConfigError(
      `PARLEY_OIDC_ISSUER must be an https address (http only on this machine), not "${issuer}".`,
    );
  }
  const audience = env.PARLEY_OIDC_AUDIENCE;
  if (!audience) {
    throw new ConfigError("PARLEY_OIDC_AUDIENCE must be given with PARLEY_OIDC_ISSUER.");
  }
  return {
    issuer,
    audience,
    usernameClaim: env.PARLEY_OIDC_USERNAME_CLAIM || "preferred_username",
  };
}

function readProviders(value: string | undefined): Config["providers"] {
  const given = value ? parseJson("PARLEY_PROVIDERS", fileOrText(value)) : defaultProviders;
  const parsed = z.record(z.string(), Provider).safeParse(given);
  if (!parsed.success) throw new ConfigError(`PARLEY_PROVIDERS ${firstIssue(parsed.error)}.`);
  const badId = Object.keys(parsed.data).find((id) => !PROVIDER_ID.test(id));
  if (badId !== undefined) {
    throw new ConfigError(
      `PARLEY_PROVIDERS: an identifier has 2 to 32 characters, a-z, 0-9, _ and -, and begins with a letter, unlike "${badId}".`,
    );
  }
  return new Map(Object.entries(parsed.data));
}

function readSwitch(name: string, value: string): boolean {
  if (value === "on" || value === "off") return value === "on";
  throw new ConfigError(`${name} must be on or off, not "${value}".`);
}

function readMasterKeys(value: string | undefined): Config["masterKeys"] {
  if (!value) return null;
  const keys = parseMasterKeys(value);
  // The value is a secret: the sentence does not repeat it.
  if (!keys) {
    throw new ConfigError(
      "PARLEY_MASTER_KEY must be 32 bytes in base64, or several, comma-separated.",
    );
  }
  return keys;
}

function fileOrText(value: string): string {
  if (value.trimStart().startsWith("{")) return value;
  if (!existsSync(value)) {
    throw new ConfigError(
      `PARLEY_PROVIDERS must be a JSON object or the path of one, and there is no file "${value}".`,
    );
  }
  try {
    return readFileSync(value, "utf8");
  } catch {
    throw new ConfigError(`PARLEY_PROVIDERS names "${value}", which cannot be read as a file.`);
  }
}

function readLimits(value: string | undefined): Limits {
  if (!value) return defaultLimits;
  const given = parseJson("PARLEY_LIMITS", value);
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new ConfigError("PARLEY_LIMITS must be a JSON object.");
  }
  for (const [name, limit] of Object.entries(given)) {
    const range = Object.hasOwn(limitRanges, name) && limitRanges[name as keyof Limits];
    if (!range) throw new ConfigError(`PARLEY_LIMITS names an unknown limit, "${name}".`);
    if (!Number.isInteger(limit) || limit < range[0] || limit > range[1]) {
      throw new ConfigError(
        `PARLEY_LIMITS: ${name} must be a whole number from ${range[0]} to ${range[1]}.`,
      );
    }
  }
  return { ...defaultLimits, ...given };
}

function readProxies(value = "0"): number {
  if (/^\d$/.test(value)) return Number(value);
  throw new ConfigError(`PARLEY_PROXIES must be a number from 0 to 9, not "${value}".`);
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

function parseJson(name: string, value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    throw new ConfigError(`${name} is not valid JSON.`);
  }
}

function firstIssue(error: z.ZodError): string {
  const [issue] = error.issues;
  return `${issue?.path.join(".") || "value"}: ${issue?.message ?? "is wrong"}`;
}
