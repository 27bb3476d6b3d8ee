import type { JWTPayload } from "jose";
import { z } from "zod";
import type { OidcClient } from "../config/oidc.ts";
import type { Logger } from "../observe/log.ts";
import { isTamperProof } from "../rules/addresses.ts";
import { unauthorized, unavailable } from "../rules/failure.ts";
import { fetchFromIssuer, type IssuerMetadata, unreachable } from "./issuer.ts";
import { isText } from "./oidc.ts";

/** This service in its requests to the issuer. */
interface AsClient {
  readonly client: OidcClient;
  readonly usernameClaim: string;
  readonly log: Logger;
}

interface CodeGrant extends Record<string, string> {
  readonly code: string;
  readonly code_verifier: string;
  readonly redirect_uri: string;
}

const Tokens = z.object({ id_token: z.string(), access_token: z.string().optional() });
type Tokens = z.infer<typeof Tokens>;

/** Exchanges the code at the issuer's token endpoint. */
export async function exchangeCode(
  { client, log }: AsClient,
  metadata: IssuerMetadata,
  grant: CodeGrant,
): Promise<Tokens> {
  const { token_endpoint, token_endpoint_auth_methods_supported: methods } = metadata;
  const { headers, parameters } = clientAuthentication(client, methods);
  const body = new URLSearchParams({
    grant_type: "authorization_code",
    ...grant,
    ...parameters,
  });
  const url = checkEndpoint("token_endpoint", token_endpoint, log);
  const { status, json } = await request(log, url, { method: "POST", headers, body });
  if (status === 200) {
    const tokens = Tokens.safeParse(json);
    if (tokens.success) return tokens.data;
  }
  const { data: error } = z.object({ error: z.string().max(64) }).safeParse(json);
  if (error?.error === "invalid_grant") {
    throw unauthorized("the sign-in service did not accept the code");
  }
  log.error({ status, ...error }, "OIDC code exchange failed");
  throw misconfigured();
}

/** How the token endpoint learns which client asks. The default of OpenID Connect is Basic. */
function clientAuthentication({ id, secret }: OidcClient, methods = ["client_secret_basic"]) {
  const usesBody =
    !methods.includes("client_secret_basic") && methods.includes("client_secret_post");
  if (secret === null) return { headers: {}, parameters: { client_id: id } };
  if (usesBody) return { headers: {}, parameters: { client_id: id, client_secret: secret } };
  const credentials = [id, secret].map(formEncoded).join(":");
  const authorization = `Basic ${Buffer.from(credentials).toString("base64")}`;
  return { headers: { authorization }, parameters: {} };
}

/** RFC 6749 encodes the credentials as form values before Basic encodes them. */
const formEncoded = (text: string) => new URLSearchParams({ "": text }).toString().slice(1);

/** Some issuers have the claims of the profile only at their userinfo endpoint. */
export async function withUserinfo(
  { usernameClaim, log }: AsClient,
  { userinfo_endpoint }: IssuerMetadata,
  claims: JWTPayload,
  { access_token }: Tokens,
): Promise<JWTPayload> {
  const isComplete = isText(claims[usernameClaim]) && isText(claims.name);
  if (isComplete || userinfo_endpoint === undefined || access_token === undefined) return claims;
  const url = checkEndpoint("userinfo_endpoint", userinfo_endpoint, log);
  const headers = { authorization: `Bearer ${access_token}` };
  const { status, json } = await request(log, url, { headers });
  const userinfo = z.looseObject({ sub: z.string() }).safeParse(json);
  if (status !== 200 || !userinfo.success) {
    log.error({ status }, "OIDC userinfo request failed");
    throw misconfigured();
  }
  if (userinfo.data.sub !== claims.sub) throw unauthorized("the userinfo is of another person");
  return { ...userinfo.data, ...claims };
}

async function request(log: Logger, url: string, init: RequestInit) {
  const headers = { accept: "application/json", ...init.headers };
  try {
    const response = await fetchFromIssuer(url, { ...init, headers });
    if (response.status >= 500) throw new Error(`the issuer answered with ${response.status}`);
    // No JSON, or only a part of it: the callers log the status, and refuse.
    return { status: response.status, json: await response.json().catch(() => null) };
  } catch (error) {
    log.error({ err: error }, "OIDC issuer request failed");
    throw unreachable();
  }
}

/** An address of the discovery document. Throws `unavailable` if it is missing or not https. */
export function checkEndpoint(name: string, address: string | undefined, log: Logger): string {
  if (address !== undefined && isTamperProof(address)) return address;
  log.error({ endpoint: name }, "OIDC discovery has no https address for an endpoint");
  throw misconfigured();
}

const misconfigured = () =>
  unavailable("the sign-in service does not work together with this server", 60);
