import { createRemoteJWKSet, errors, type JWTVerifyGetKey, jwtVerify } from "jose";
import type { Config } from "../config.ts";
import { unauthorized, unavailable } from "../failure.ts";

export interface Identity {
  username: string;
  display_name: string;
  expires_at: number;
}

export interface Oidc {
  /** Whether a bearer token has the form of a JWT at all. */
  recognises(token: string): boolean;
  /** Checks signature, issuer, audience and expiry; throws `unauthorized`. */
  verify(token: string): Promise<Identity>;
}

export function oidc(config: NonNullable<Config["oidc"]>): Oidc {
  let keys: Promise<JWTVerifyGetKey> | null = null;
  /** Found on first use, so that the service starts while the issuer is away. */
  const keySet = () => {
    keys ??= discover(config.issuer).catch((error) => {
      keys = null;
      throw error;
    });
    return keys;
  };
  return {
    recognises: (token) => /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token),
    async verify(token) {
      const getKey = await keySet();
      const { payload } = await jwtVerify(token, getKey, {
        issuer: config.issuer,
        audience: config.audience,
        requiredClaims: ["exp"],
        algorithms: [
          "RS256",
          "RS384",
          "RS512",
          "PS256",
          "PS384",
          "PS512",
          "ES256",
          "ES384",
          "ES512",
          "EdDSA",
        ],
      }).catch(rejected);
      const claim = payload[config.usernameClaim];
      const username = typeof claim === "string" ? claim.toLowerCase() : "";
      if (!/^[a-z0-9_]{2,32}$/.test(username)) {
        throw unauthorized(`the token's ${config.usernameClaim} is not a username`);
      }
      const name = typeof payload.name === "string" ? oneLine(payload.name) : "";
      return {
        username,
        display_name: name || username,
        expires_at: (payload.exp ?? 0) * 1000,
      };
    },
  };
}

async function discover(issuer: string): Promise<JWTVerifyGetKey> {
  const address = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  try {
    const response = await fetch(address, { signal: AbortSignal.timeout(5000) });
    const document = (await response.json()) as { jwks_uri?: unknown };
    return createRemoteJWKSet(new URL(String(document.jwks_uri)), {
      // A rotated key is looked for at once, but an unknown one cannot make us hammer the issuer.
      cooldownDuration: 2000,
    });
  } catch {
    throw unavailable("the sign-in service cannot be reached", 5);
  }
}

function rejected(error: unknown): never {
  const reachable =
    error instanceof errors.JOSEError &&
    !(error instanceof errors.JWKSTimeout) &&
    error.code !== "ERR_JOSE_GENERIC";
  if (!reachable) throw unavailable("the sign-in service cannot be reached", 5);
  throw unauthorized("the access token is not valid");
}

/** A name as `updateMe` would take it, whatever the issuer has. */
const oneLine = (name: string) =>
  [
    ...name
      .toWellFormed()
      .replace(/\p{Cc}/gu, " ")
      .trim(),
  ]
    .slice(0, 64)
    .join("")
    .trim();
