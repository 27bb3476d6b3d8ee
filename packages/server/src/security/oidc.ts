import { cleanName, isReservedName } from "@parley/protocol";
import { createRemoteJWKSet, errors, type JWTVerifyGetKey, jwtVerify } from "jose";
import { z } from "zod";
import type { Config } from "../config.ts";
import type { Logger } from "../observe/log.ts";
import { unauthorized, unavailable } from "../rules/failure.ts";
import { isTamperProof } from "./destination.ts";

/** A person authenticated by the issuer. `issuer` and `subject` together identify them permanently. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  /** The issuer's username claim in lowercase, from which a username is derived. */
  readonly requestedName: string;
  /** Null if the token has no name that may be used as a display name. */
  readonly display_name: string | null;
  readonly expires_at: number;
}

export interface Oidc {
  /** Whether a bearer token has the form of a JWT. */
  recognises(token: string): boolean;
  /** Checks signature, issuer, audience and expiry. Throws `unauthorized` or `unavailable`. */
  verify(token: string): Promise<Identity>;
}

const ALGORITHMS = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA".split(" ");

/** OpenID Connect limits a subject to 255 characters. */
const Subject = z
  .string()
  .min(1)
  .max(255)
  .refine((value) => value.isWellFormed() && !value.includes("\0"));

export function oidc(config: NonNullable<Config["oidc"]>, log: Logger): Oidc {
  let keys: Promise<JWTVerifyGetKey> | null = null;
  /** Fetched on first use, so that the service starts while the issuer is unreachable. */
  const keySet = () => {
    keys ??= discover(config.issuer).catch((error) => {
      keys = null;
      log.error({ err: error, issuer: config.issuer }, "OIDC discovery failed");
      throw unreachable();
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
        algorithms: ALGORITHMS,
      }).catch(rejected);
      const subject = Subject.safeParse(payload.sub);
      if (!subject.success) throw unauthorized("the token has no valid sub");
      const claim = payload[config.usernameClaim];
      if (typeof claim !== "string" || claim.trim() === "") {
        throw unauthorized(`the token has no ${config.usernameClaim}`);
      }
      return {
        issuer: config.issuer,
        subject: subject.data,
        requestedName: claim.toLowerCase(),
        display_name: shownName(payload.name),
        expires_at: (payload.exp ?? 0) * 1000,
      };
    },
  };
}

/** The part of the issuer's discovery document that is used. */
const Discovery = z.object({ issuer: z.string(), jwks_uri: z.string() });

async function discover(issuer: string): Promise<JWTVerifyGetKey> {
  const address = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const response = await fetch(address, { signal: AbortSignal.timeout(5000), redirect: "error" });
  const found = Discovery.parse(await response.json());
  if (found.issuer !== issuer) throw new Error("the discovery document names another issuer");
  if (!isTamperProof(found.jwks_uri)) throw new Error("jwks_uri is not an https address");
  return createRemoteJWKSet(new URL(found.jwks_uri), {
    // Finds a rotated key within seconds; tokens with unknown keys cause one request per cooldown.
    cooldownDuration: 2000,
  });
}

const unreachable = () => unavailable("the sign-in service cannot be reached", 5);

function rejected(error: unknown): never {
  const isReachable =
    error instanceof errors.JOSEError &&
    !(error instanceof errors.JWKSTimeout) &&
    error.code !== "ERR_JOSE_GENERIC";
  if (!isReachable) throw unreachable();
  throw unauthorized("the access token is not valid");
}

const NAME_CHARACTERS = 64;

/** The issuer's name for the person, in a form that `updateMe` would accept. */
function shownName(claim: unknown): string | null {
  if (typeof claim !== "string") return null;
  const line = claim
    .slice(0, 32 * NAME_CHARACTERS)
    .toWellFormed()
    .replace(/\p{Cc}/gu, " ");
  const name = [...cleanName(line)].slice(0, NAME_CHARACTERS).join("").trim();
  return name === "" || isReservedName(name) ? null : name;
}
