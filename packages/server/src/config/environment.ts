import { suggestion } from "../rules/similar-names.ts";
import { ConfigError } from "./error.ts";

/** Every variable that `config.ts` and the parsers beside it read. Reading another one is a type error. */
const SETTINGS = [
  "PORT",
  "HOST",
  "DATABASE_URL",
  "NATS_URL",
  "NATS_TLS",
  "NATS_CREDS",
  "NATS_CA",
  "NATS_CERT",
  "NATS_KEY",
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
  "AWS_REGION",
  "PARLEY_AUDIT_DAYS",
  "PARLEY_DATA",
  "PARLEY_FILES",
  "PARLEY_LIMITS",
  "PARLEY_LOG",
  "PARLEY_MASTER_KEY",
  "PARLEY_METRICS_HOST",
  "PARLEY_METRICS_PORT",
  "PARLEY_OIDC_AUDIENCE",
  "PARLEY_OIDC_CLIENT_ID",
  "PARLEY_OIDC_CLIENT_SECRET_FILE",
  "PARLEY_OIDC_ISSUER",
  "PARLEY_OIDC_NAME",
  "PARLEY_OIDC_SCOPES",
  "PARLEY_OIDC_USERNAME_CLAIM",
  "PARLEY_OPERATORS",
  "PARLEY_ORIGINS",
  "PARLEY_PASSWORD_SIGN_IN",
  "PARLEY_POLICY",
  "PARLEY_PRIVATE_ADDRESSES",
  "PARLEY_PROVIDERS",
  "PARLEY_PROXIES",
  "PARLEY_RETENTION_DAYS",
  "PARLEY_SANDBOX",
  "PARLEY_SERVICE_KEY_FILE",
  "PARLEY_SIGNUP",
  "PARLEY_STRICT_ERRORS",
  "PARLEY_TOOL_SERVERS",
] as const;

export type Environment = { readonly [Name in (typeof SETTINGS)[number]]?: string | undefined };

const PREFIX = "PARLEY_";
/** Variables of the deployment files, and of programs that call Parley. */
const OF_OTHERS = ["PARLEY_IMAGE", "PARLEY_SERVICE_KEY", "PARLEY_URL", "PARLEY_WEBHOOK_SECRET"];
const OF_TESTS = "PARLEY_TEST_";
/** Kubernetes and Docker add such variables for a service with the name `parley`. */
const OF_A_SERVICE = /_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_\w+)?$/;
const SERVICE_ADDRESS = /^(tcp|udp|sctp):\/\//;

/** Throws for a misspelled setting: without its real one, a server may be open where it should be closed. */
export function refuseUnknown(variables: Readonly<Record<string, string | undefined>>): void {
  const known = new Set<string>(SETTINGS);
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
    : plain && suggestion(name.toUpperCase(), SETTINGS);
  throw new ConfigError(`${name} is not a setting of Parley: correct or remove it.${nearest}`);
}
