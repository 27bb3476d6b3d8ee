import {
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JWTPayload,
  jwtVerify,
} from "jose";
import { z } from "zod";
import type { Logger } from "../observe/log.ts";
import { isTamperProof } from "../rules/addresses.ts";
import { unauthorized, unavailable } from "../rules/failure.ts";
import { once } from "../rules/once.ts";
import { readStart } from "./guarded-fetch.ts";

export type Issuer = ReturnType<typeof createIssuer>;

/** The part of the discovery document that is used. Addresses other than `jwks_uri` are not checked. */
const Metadata = z.object({
  issuer: z.string(),
  jwks_uri: z.string(),
  authorization_endpoint: z.string().optional(),
  token_endpoint: z.string().optional(),
  userinfo_endpoint: z.string().optional(),
  token_endpoint_auth_methods_supported: z.array(z.string()).optional(),
  authorization_response_iss_parameter_supported: z.boolean().optional(),
});
export type IssuerMetadata = z.infer<typeof Metadata>;

const ALGORITHMS = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA".split(" ");

const TIMEOUT_MS = 5000;
/** Far more than documents, key sets and tokens of issuers have. */
const MAX_RESPONSE_BYTES = 512 * 1024;

/** An OpenID Connect issuer, found by its discovery document on first use. */
export function createIssuer(address: string, log: Logger) {
  /** Fetched on first use, so that the service starts while the issuer is unreachable. */
  const discovered = once(() =>
    discover(address).catch((error) => {
      log.error({ err: error, issuer: address }, "OIDC discovery failed");
      throw unreachable();
    }),
  );
  return {
    /** Its discovery document. Throws `unavailable`. */
    metadata: async () => (await discovered()).metadata,
    /** Checks signature, issuer, audience and expiry. Throws `unauthorized` or `unavailable`. */
    async verify(token: string, audience: string): Promise<JWTPayload> {
      const { keys } = await discovered();
      const { payload } = await jwtVerify(token, keys, {
        issuer: address,
        audience,
        requiredClaims: ["exp"],
        algorithms: ALGORITHMS,
      }).catch(rejected);
      return payload;
    },
  };
}

export const unreachable = () => unavailable("the sign-in service cannot be reached", 5);

async function discover(address: string) {
  const url = `${address.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const metadata = Metadata.parse(await (await fetchFromIssuer(url)).json());
  if (metadata.issuer !== address) throw new Error("the discovery document names another issuer");
  if (!isTamperProof(metadata.jwks_uri)) throw new Error("jwks_uri is not an https address");
  const keys = createRemoteJWKSet(new URL(metadata.jwks_uri), {
    // Finds a rotated key within seconds; tokens with unknown keys cause one request per cooldown.
    cooldownDuration: 2000,
    [customFetch]: fetchFromIssuer satisfies FetchImplementation,
  });
  return { metadata, keys };
}

/** Makes a request to the issuer and reads the whole response. Redirects are errors. */
export async function fetchFromIssuer(url: string, request: RequestInit = {}): Promise<Response> {
  const signal = request.signal ?? AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(url, { ...request, signal, redirect: "error" });
  const body = await readStart(response, MAX_RESPONSE_BYTES + 1);
  if (body.length > MAX_RESPONSE_BYTES) throw new Error("the response of the issuer is too large");
  return new Response(body, { status: response.status });
}

function rejected(error: unknown): never {
  const isReachable =
    error instanceof errors.JOSEError &&
    !(error instanceof errors.JWKSTimeout) &&
    error.code !== "ERR_JOSE_GENERIC";
  if (!isReachable) throw unreachable();
  throw unauthorized("the access token is not valid");
}
