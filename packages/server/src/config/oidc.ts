import { isTamperProof } from "../rules/addresses.ts";
import { ConfigError, type Environment, readSecretFile } from "./setting.ts";

/** An OpenID Connect issuer whose people can sign in. */
export type OidcSettings = NonNullable<ReturnType<typeof readOidc>>;
export type OidcClient = NonNullable<ReturnType<typeof readClient>>;

export function readOidc(env: Environment) {
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
  return {
    issuer,
    /** The audience of tokens that callers send as bearer tokens. Null: such tokens are not accepted. */
    audience,
    usernameClaim: env.PARLEY_OIDC_USERNAME_CLAIM || "preferred_username",
    /** This service as a client of the issuer. Null: the web client offers no sign-in with it. */
    client,
  };
}

function readClient(env: Environment, issuer: string) {
  const id = env.PARLEY_OIDC_CLIENT_ID;
  if (!id) return null;
  const setting = "PARLEY_OIDC_CLIENT_SECRET_FILE";
  const file = env[setting];
  return {
    id,
    /** Null for a public client. */
    secret: file ? readSecretFile(setting, file, SECRET_FORM, "line: the client secret") : null,
    /** What people call the issuer, for the button. */
    name: readName(env.PARLEY_OIDC_NAME || new URL(issuer).host),
    /** Space-separated. */
    scopes: readScopes(env.PARLEY_OIDC_SCOPES || "openid profile"),
  };
}

const SECRET_FORM = /^[\x20-\x7e]+$/;
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
