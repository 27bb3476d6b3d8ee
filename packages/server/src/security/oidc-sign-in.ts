import { createHash, randomBytes } from "node:crypto";
import type { JWTPayload } from "jose";
import { z } from "zod";
import type { OidcClient, OidcSettings } from "../config/oidc.ts";
import type { Logger } from "../observe/log.ts";
import { unauthorized } from "../rules/failure.ts";
import type { Issuer, IssuerMetadata } from "./issuer.ts";
import { type Identity, identityOf } from "./oidc.ts";
import { checkEndpoint, exchangeCode, withUserinfo } from "./oidc-exchange.ts";
import { isSameSecret } from "./same-secret.ts";
import type { Vault } from "./vault.ts";

/**
 * Sign-in in a browser, by the authorization code flow of OpenID Connect with PKCE. The server keeps
 * no state between the two steps: the browser keeps it, sealed, and only the browser that has it can
 * finish the sign-in. So nobody can be signed in to another person's account by a link. A sign-in is
 * finished once because the issuer accepts its code once.
 */
export interface OidcSignIn {
  /**
   * Begins a sign-in. `base` is the address of the service as the browser called it, to which the
   * issuer sends the browser back. `again`: the issuer must ask the person to sign in, even if they are
   * signed in there. Throws `unavailable`.
   */
  start(base: string, options: { again?: boolean | undefined }): Promise<StartedSignIn>;
  /** Exchanges the issuer's answer for an identity. Throws `unauthorized` or `unavailable`. */
  finish(answer: SignInAnswer): Promise<Identity>;
}

export interface StartedSignIn {
  /** Where the browser goes next. */
  readonly authorization_url: string;
  /** The sealed state of the sign-in. */
  readonly flow: string;
}

/** What the issuer gave the browser, and the flow that the browser has kept. */
export interface SignInAnswer {
  readonly flow: string;
  readonly state: string;
  readonly code: string;
  /** The issuer that the answer names (RFC 9207). */
  readonly iss?: string | undefined;
}

export interface OidcSignInOptions {
  readonly settings: OidcSettings & { readonly client: OidcClient };
  readonly issuer: Issuer;
  readonly vault: Vault;
  readonly log: Logger;
}

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

export function createOidcSignIn(options: OidcSignInOptions): OidcSignIn {
  const { settings, issuer, vault, log } = options;
  const { client, usernameClaim } = settings;
  const asClient = { client, usernameClaim, log };
  return {
    async start(base, { again = false }) {
      const { authorization_endpoint } = await issuer.metadata();
      const flow: Flow = {
        state: randomText(),
        nonce: randomText(),
        verifier: randomText(),
        redirect_uri: base + CALLBACK_PATH,
        expires_at: Date.now() + FLOW_MS,
        again,
      };
      const endpoint = checkEndpoint("authorization_endpoint", authorization_endpoint, log);
      return {
        authorization_url: authorizationUrl(endpoint, flow, client),
        flow: vault.seal(JSON.stringify(flow), BINDING),
      };
    },
    async finish({ flow: sealed, state, code, iss }) {
      const flow = openFlow(vault, sealed);
      if (!flow || !isSameSecret(state, flow.state))
        throw unauthorized("this sign-in was not begun here");
      if (flow.expires_at <= Date.now()) throw unauthorized("the sign-in took too long");
      const metadata = await issuer.metadata();
      checkAnswerIssuer(metadata, settings.issuer, iss);
      const { verifier, redirect_uri } = flow;
      const grant = { code, code_verifier: verifier, redirect_uri };
      const tokens = await exchangeCode(asClient, metadata, grant);
      const claims = await issuer.verify(tokens.id_token, client.id);
      checkIdToken(claims, flow, client);
      return identityOf(await withUserinfo(asClient, metadata, claims, tokens), settings);
    },
  };
}

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

/** Null if it was not sealed by this service. */
function openFlow(vault: Vault, sealed: string): Flow | null {
  try {
    return Flow.parse(JSON.parse(vault.open(sealed, BINDING)));
  } catch {
    // Forged, or sealed with a master key that was removed.
    return null;
  }
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
