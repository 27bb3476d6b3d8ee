import { ConfigError, type Environment, readNamedFile, readSwitch } from "./setting.ts";

/** The connection to PostgreSQL, which then replaces SQLite. */
export interface Database {
  readonly url: string;
  readonly tls: false | { readonly ca?: string; readonly rejectUnauthorized: boolean };
}

const SSL_MODES = ["disable", "require", "verify-ca", "verify-full"];

/** Parses DATABASE_URL. It may contain a password, so errors do not repeat it. */
export function readDatabase(value: string | undefined): Database | null {
  if (!value) return null;
  const url = URL.parse(value);
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
    tls: { rejectUnauthorized, ...(ca !== null && { ca: readNamedFile("DATABASE_URL", ca) }) },
  };
}

/** The connection between nodes. TLS is the default on other hosts: events contain what people write. */
export function readNats(settings: Environment) {
  const { NATS_URL, NATS_CREDS, NATS_TLS, NATS_CA, NATS_CERT, NATS_KEY } = settings;
  if (!NATS_URL) return null;
  const servers = NATS_URL.split(",").map((server) => server.trim());
  const urls = servers.map(readNatsUrl);
  for (const [name, file] of Object.entries({ NATS_CREDS, NATS_CA, NATS_CERT, NATS_KEY })) {
    if (file) readNamedFile(name, file);
  }
  const isEncrypted = NATS_TLS ? readSwitch("NATS_TLS", NATS_TLS) : !urls.every(isLocal);
  const files = { caFile: NATS_CA, certFile: NATS_CERT, keyFile: NATS_KEY };
  /** Set if the connection must be encrypted. */
  const tls = isEncrypted || Object.values(files).some(Boolean) ? files : undefined;
  return { servers, credentialsFile: NATS_CREDS || undefined, tls };
}

function readNatsUrl(server: string): URL {
  const url = URL.parse(server);
  if (!url || !/^(nats|tls):$/.test(url.protocol) || url.hostname === "") {
    throw new ConfigError(
      "NATS_URL must be such as nats://host:4222, or several, comma-separated.",
    );
  }
  return url;
}

const isLocal = ({ hostname }: URL) =>
  /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
