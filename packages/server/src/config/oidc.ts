import { isTamperProof } from "../rules/addresses.ts";
import type { Environment } from "./environment.ts";
import { ConfigError } from "./error.ts";
import { readNamedFile } from "./files.ts";

/** An OpenID Connect issuer whose people can sign in. */
export interface OidcSettings {
  issuer: string;
  /** The audience of tokens that callers send as bearer tokens. Null: such tokens are not accepted. */
  audience: string | null;
  usernameClaim: string;
  /** This service as a client of the issuer. Null: the web client offers no sign-in with it. */
  client: OidcClient | null;
}

export interface OidcClient {
  id: string;
  /** Null for a public client. */
  secret: string | null;
  /** What people call the issuer, for the button. */
  name: string;
  /** Space-separated. */
  scopes: string;
}

export function readOidc(env: Environment): OidcSettings | null {
  const issuer = env.PARLEY_OIDC_ISSUER;
  if (!issuer) {
    const isForgotten =
      issuer === undefined && (env.PARLEY_OIDC_CLIENT_ID || env.PARLEY_OIDC_AUDIENCE);
    if (!isForgotten) return null;
    throw new ConfigError("PARLEY_OIDC_ISSUER must be given with the other settings of OIDC.");
  }
  if (!isTamperProof(issuer)) {
    throw new ConfigError(
      `PARLEY_OIDC_ISSUER must be an https address (http only on this machine), not "${issuer}".`,
    );
  }
  const audience = env.PARLEY_OIDC_AUDIENCE || null;
  const client = readClient(env, issuer);
  if (!audience && !client) {
    throw new ConfigError(
      "PARLEY_OIDC_AUDIENCE or PARLEY_OIDC_CLIENT_ID must be given with PARLEY_OIDC_ISSUER.",
    );
  }
  const usernameClaim = env.PARLEY_OIDC_USERNAME_CLAIM || "preferred_username";
  return { issuer, audience, usernameClaim, client };
}

function readClient(env: Environment, issuer: string): OidcClient | null {
  const id = env.PARLEY_OIDC_CLIENT_ID;
  if (!id) return null;
  return {
    id,
    secret: readSecret(env.PARLEY_OIDC_CLIENT_SECRET_FILE),
    name: readName(env.PARLEY_OIDC_NAME || new URL(issuer).host),
    scopes: readScopes(env.PARLEY_OIDC_SCOPES || "openid profile"),
  };
}

function readSecret(file: string | undefined): string | null {
  if (!file) return null;
  const secret = readNamedFile("PARLEY_OIDC_CLIENT_SECRET_FILE", file).trim();
  // The content is a secret, so the error does not repeat it.
  if (/^[\x20-\x7e]+$/.test(secret)) return secret;
  throw new ConfigError(
    "PARLEY_OIDC_CLIENT_SECRET_FILE must name a file with one line: the client secret.",
  );
}

const NAME_CHARACTERS = 40;

function readName(name: string): string {
  if ([...name].length <= NAME_CHARACTERS && !/\p{Cc}/u.test(name)) return name;
  throw new ConfigError(
    `PARLEY_OIDC_NAME must be one line of at most ${NAME_CHARACTERS} characters, not ${JSON.stringify(name)}.`,
  );
}

function readScopes(value: string): string {
  const scopes = value.split(/\s+/).filter(Boolean);
  const areValid = scopes.every((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope));
  if (areValid && scopes.includes("openid")) return scopes.join(" ");
  throw new ConfigError(
    `PARLEY_OIDC_SCOPES must be scopes separated by spaces, openid among them, not ${JSON.stringify(value)}.`,
  );
}
