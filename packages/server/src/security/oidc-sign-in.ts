import { createHash, randomBytes } from "node:crypto";
import type { JWTPayload } from "jose";
import { z } from "zod";
import type { OidcClient, OidcSettings } from "../config/oidc.ts";
import type { Logger } from "../observe/log.ts";
import { isTamperProof } from "../rules/addresses.ts";
import { unauthorized, unavailable } from "../rules/failure.ts";
import { fetchFromIssuer, type Issuer, type IssuerMetadata, unreachable } from "./issuer.ts";
import { identityOf, isText } from "./oidc.ts";
import { isSameSecret } from "./tokens.ts";
import type { Vault } from "./vault.ts";

export type OidcSignIn = ReturnType<typeof createOidcSignIn>;

/** The page of the web client to which the issuer sends the browser back. */
const CALLBACK_PATH = "/sign-in";

/** How long a person may take at the issuer. */
const FLOW_MS = 15 * 60_000;

/** How far the clock of the issuer may be behind. */
const CLOCK_SKEW_MS = 120_000;

/** Not a valid provider id, so that nothing else that is sealed is accepted as a flow. */
const BINDING = { owner_id: 0, provider: "oidc sign-in" };

const Flow = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  redirect_uri: z.string(),
  expires_at: z.number(),
  again: z.boolean().default(false),
});
type Flow = z.infer<typeof Flow>;

const Tokens = z.object({ id_token: z.string(), access_token: z.string().optional() });
type Tokens = z.infer<typeof Tokens>;

/**
 * Sign-in in a browser, by the authorization code flow of OpenID Connect with PKCE. The server keeps
 * no state between the two steps: the browser keeps it, sealed, and only the browser that has it can
 * finish the sign-in. So nobody can be signed in to another person's account by a link. A sign-in is
 * finished once because the issuer accepts its code once.
 */
export function createOidcSignIn({
  settings,
  issuer,
  vault,
  log,
}: {
  readonly settings: OidcSettings & { readonly client: OidcClient };
  readonly issuer: Issuer;
  readonly vault: Vault;
  readonly log: Logger;
}) {
  const { client, usernameClaim } = settings;

  /** An address of the discovery document. Throws `unavailable` if it is missing or not https. */
  function endpointOf(metadata: IssuerMetadata, name: Endpoint): string {
    const address = metadata[name];
    if (address !== undefined && isTamperProof(address)) return address;
    log.error({ endpoint: name }, "OIDC discovery has no https address for an endpoint");
    throw misconfigured();
  }

  async function request(url: string, init: RequestInit) {
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

  /** Null if it was not sealed by this service. */
  function openFlow(sealed: string): Flow | null {
    try {
      return Flow.parse(JSON.parse(vault.open(sealed, BINDING)));
    } catch {
      // Forged, or sealed with a master key that was removed.
      return null;
    }
  }

  async function exchangeCode(metadata: IssuerMetadata, code: string, flow: Flow): Promise<Tokens> {
    const methods = metadata.token_endpoint_auth_methods_supported;
    const { headers, parameters } = clientAuthentication(client, methods);
    const body = new URLSearchParams({
      grant_type: "authorization_code",
      code,
      code_verifier: flow.verifier,
      redirect_uri: flow.redirect_uri,
      ...parameters,
    });
    const url = endpointOf(metadata, "token_endpoint");
    const { status, json } = await request(url, { method: "POST", headers, body });
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

  /** Some issuers have the claims of the profile only at their userinfo endpoint. */
  async function withUserinfo(
    metadata: IssuerMetadata,
    claims: JWTPayload,
    { access_token }: Tokens,
  ): Promise<JWTPayload> {
    const isComplete = isText(claims[usernameClaim]) && isText(claims.name);
    if (isComplete || metadata.userinfo_endpoint === undefined || access_token === undefined) {
      return claims;
    }
    const url = endpointOf(metadata, "userinfo_endpoint");
    const headers = { authorization: `Bearer ${access_token}` };
    const { status, json } = await request(url, { headers });
    const userinfo = z.looseObject({ sub: z.string() }).safeParse(json);
    if (status !== 200 || !userinfo.success) {
      log.error({ status }, "OIDC userinfo request failed");
      throw misconfigured();
    }
    if (userinfo.data.sub !== claims.sub) throw unauthorized("the userinfo is of another person");
    return { ...userinfo.data, ...claims };
  }

  return {
    /**
     * Begins a sign-in. `base` is the address of the service as the browser called it, to which the
     * issuer sends the browser back. `again`: the issuer must ask the person to sign in, even if they are
     * signed in there. Returns where the browser goes next, and the sealed state of the sign-in, which it
     * keeps. Throws `unavailable`.
     */
    async start(base: string, { again = false }: { again?: boolean | undefined }) {
      const metadata = await issuer.metadata();
      const flow: Flow = {
        state: randomText(),
        nonce: randomText(),
        verifier: randomText(),
        redirect_uri: base + CALLBACK_PATH,
        expires_at: Date.now() + FLOW_MS,
        again,
      };
      const endpoint = endpointOf(metadata, "authorization_endpoint");
      return {
        authorization_url: authorizationUrl(endpoint, flow, client),
        flow: vault.seal(JSON.stringify(flow), BINDING),
      };
    },
    /**
     * Exchanges what the issuer gave the browser for an identity. `iss`: the issuer that the answer names
     * (RFC 9207). Throws `unauthorized` or `unavailable`.
     */
    async finish(answer: { flow: string; state: string; code: string; iss?: string | undefined }) {
      const flow = openFlow(answer.flow);
      if (!flow || !isSameSecret(answer.state, flow.state))
        throw unauthorized("this sign-in was not begun here");
      if (flow.expires_at <= Date.now()) throw unauthorized("the sign-in took too long");
      const metadata = await issuer.metadata();
      checkAnswerIssuer(metadata, settings.issuer, answer.iss);
      const tokens = await exchangeCode(metadata, answer.code, flow);
      const claims = await issuer.verify(tokens.id_token, client.id);
      checkIdToken(claims, flow, client);
      return identityOf(await withUserinfo(metadata, claims, tokens), settings);
    },
  };
}

type Endpoint = "authorization_endpoint" | "token_endpoint" | "userinfo_endpoint";

const randomText = () => randomBytes(32).toString("base64url");

function authorizationUrl(endpoint: string, flow: Flow, { id, scopes }: OidcClient): string {
  const url = new URL(endpoint);
  const parameters = {
    response_type: "code",
    client_id: id,
    redirect_uri: flow.redirect_uri,
    scope: scopes,
    state: flow.state,
    nonce: flow.nonce,
    code_challenge: createHash("sha256").update(flow.verifier).digest("base64url"),
    code_challenge_method: "S256",
    ...(flow.again && { prompt: "login", max_age: "0" }),
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

/** An answer that another issuer has given must not be sent to this one (mix-up). */
function checkAnswerIssuer(metadata: IssuerMetadata, address: string, iss: string | undefined) {
  const isRequired = metadata.authorization_response_iss_parameter_supported === true;
  if (iss === address || (iss === undefined && !isRequired)) return;
  throw unauthorized("the answer is not from the configured sign-in service");
}

/** A token of another sign-in, or for another client, is not accepted. */
function checkIdToken(claims: JWTPayload, flow: Flow, { id }: OidcClient): void {
  const { nonce } = flow;
  const isForOthers = Array.isArray(claims.aud) && claims.aud.length > 1;
  const isIssuedTo = claims.azp === undefined ? !isForOthers : claims.azp === id;
  const hasNonce = typeof claims.nonce === "string" && isSameSecret(claims.nonce, nonce);
  if (!hasNonce || !isIssuedTo) throw unauthorized("the ID token is not of this sign-in");
  // With `max_age` the issuer must say when the person signed in.
  const signedInAt = Number(claims.auth_time) * 1000;
  if (flow.again && !(signedInAt > flow.expires_at - FLOW_MS - CLOCK_SKEW_MS)) {
    throw unauthorized("the sign-in service did not ask you to sign in again");
  }
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

const misconfigured = () =>
  unavailable("the sign-in service does not work together with this server", 60);
