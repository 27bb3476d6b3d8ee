import { randomBytes } from "node:crypto";
import {
  type AuthorizationServerMetadata,
  checkResourceAllowed,
  discoverOAuthServerInfo,
  exchangeAuthorization,
  extractWWWAuthenticateParams,
  type FetchLike,
  LATEST_PROTOCOL_VERSION,
  type OAuthClientInformationMixed,
  registerClient,
  startAuthorization,
} from "@modelcontextprotocol/client";
import {
  type OAuthSecrets,
  openToolSecrets,
  sealToolSecrets,
  type ToolSecrets,
} from "../../domain/tools.ts";
import { VERSION } from "../../observe/version.ts";
import { isTamperProof } from "../../rules/addresses.ts";
import { conflict, Failure, forbidden } from "../../rules/failure.ts";
import { hashToken } from "../../rules/tokens.ts";
import type { GuardedFetch } from "../../security/guarded-fetch.ts";
import type { ToolServerRecord } from "../../store/tools.ts";
import { CALLBACK_PATH, CLIENT_PATH, clientMetadata } from "./client-metadata.ts";
import { contactError } from "./contact-error.ts";
import type { OwnServerOptions } from "./server-auth.ts";
import { createToolFetch } from "./tool-fetch.ts";

/** What the authorization server sends a browser back with. */
export interface AuthorizationAnswer {
  readonly state: string;
  /** Without a code the authorization server has refused. */
  readonly code?: string | undefined;
  readonly iss?: string | undefined;
}

const PENDING_MS = 10 * 60_000;
/** What an authorization server says about itself is stored with every server that uses it. */
const MAX_SECRETS_CHARACTERS = 65_536;

/** The authorization of tool servers by OAuth, as the MCP specification describes it. */
export function createToolAuthorization(options: OwnServerOptions) {
  const { store, vault } = options;

  async function begin(server: ToolServerRecord, base: string): Promise<string> {
    const fetchFn = boundedFetch(options.fetch);
    checkTamperProof(server.url, "the server");
    const known = openToolSecrets(vault, server);
    const { scope, ...found } = await discover(server.url, fetchFn);
    const client = await clientOf(found, known.oauth, base, fetchFn, scope);
    const redirect_url = `${base}${CALLBACK_PATH}`;
    const state = `${server.id}.${randomBytes(32).toString("base64url")}`;
    const { authorizationUrl, codeVerifier } = await startAuthorization(found.server_url, {
      metadata: found.metadata,
      clientInformation: client,
      redirectUrl: redirect_url,
      state,
      ...(scope && { scope }),
      ...(found.resource && { resource: found.resource }),
    });
    const pending = {
      state_hash: hashToken(state),
      code_verifier: codeVerifier,
      expires_at: Date.now() + PENDING_MS,
    };
    const tokens = known.oauth?.tokens;
    const oauth = { ...found, client, redirect_url, pending, ...(tokens && { tokens }) };
    if (!(await save(server, { ...known, oauth }))) throw changed();
    return authorizationUrl.href;
  }

  async function save(server: ToolServerRecord, secrets: ToolSecrets): Promise<boolean> {
    if (JSON.stringify(secrets).length > MAX_SECRETS_CHARACTERS) {
      throw conflict("the authorization server sends too much");
    }
    const sealed = sealToolSecrets(vault, server, secrets);
    return store.write((tx) => tx.replaceToolSecrets(server, sealed));
  }

  /** The authorization that a state belongs to. It cannot be used again afterwards. */
  async function take(ownerId: number, state: string) {
    const [id = ""] = state.split(".");
    const server = await store.read((tx) => tx.toolServer(id));
    const secrets = server && openToolSecrets(vault, server);
    const { pending, ...oauth } = secrets?.oauth ?? {};
    if (!server || pending?.state_hash !== hashToken(state)) throw over();
    if (server.owner_id !== ownerId) throw forbidden("another person began this authorization");
    const kept = { ...secrets, oauth: oauth as OAuthSecrets };
    const isFirst = await save(server, kept);
    if (!isFirst || pending.expires_at < Date.now()) throw over();
    return { id, oauth: kept.oauth, code_verifier: pending.code_verifier };
  }

  async function finish(ownerId: number, { state, code, iss }: AuthorizationAnswer) {
    const { id, oauth, code_verifier } = await take(ownerId, state);
    if (code === undefined) return id;
    const { metadata, client, resource } = oauth;
    const tokens = await exchangeAuthorization(oauth.server_url, {
      metadata,
      clientInformation: client,
      authorizationCode: code,
      // Whether it is that of the server which was asked is checked too.
      ...(iss !== undefined && { iss }),
      codeVerifier: code_verifier,
      redirectUri: oauth.redirect_url,
      ...(resource && { resource }),
      fetchFn: boundedFetch(options.fetch),
    });
    const server = await store.read((tx) => tx.toolServer(id));
    const { access_token, refresh_token } = tokens;
    const granted = { ...oauth, tokens: { access_token, refresh_token } };
    if (!server || !(await save(server, { oauth: granted }))) throw changed();
    return id;
  }

  return {
    /**
     * Finds the authorization server, registers Parley with it if need be, and returns the address of the
     * page on which the owner agrees. Throws `conflict` if that is not possible.
     */
    begin: (server: ToolServerRecord, base: string) => begin(server, base).catch(refuse),
    /**
     * Exchanges the code for tokens, once for each authorization. Returns the id of the server. Throws
     * `forbidden` if somebody else began the authorization: whoever opens a link of another person must
     * not give that person access. Throws `conflict` if the exchange fails, or if the answer belongs to
     * no authorization that was begun in the last ten minutes.
     */
    finish: (ownerId: number, answer: AuthorizationAnswer) => finish(ownerId, answer).catch(refuse),
  };
}

const changed = () => conflict("the server was changed meanwhile");
const over = () => conflict("the authorization was ended before, or has taken too long");

/** For all requests of one step of an authorization together. */
const STEP_MS = 20_000;

function boundedFetch(guarded: GuardedFetch): FetchLike {
  const deadline = AbortSignal.timeout(STEP_MS);
  const { fetch } = createToolFetch(guarded);
  return (url, init) => fetch(url, { ...init, signal: deadline });
}

function refuse(error: unknown): never {
  if (error instanceof Failure) throw error;
  throw conflict(`the server cannot be authorized. ${contactError(error).error}`);
}

type Discovered = Pick<OAuthSecrets, "server_url" | "metadata" | "resource">;

/** Asks the server without a token, and then whomever it names. */
async function discover(url: string, fetchFn: FetchLike): Promise<Discovered & { scope?: string }> {
  const challenge = await challengeOf(url, fetchFn);
  const found = await discoverOAuthServerInfo(url, {
    fetchFn,
    ...(challenge.resourceMetadataUrl && { resourceMetadataUrl: challenge.resourceMetadataUrl }),
  });
  const { authorizationServerMetadata: metadata, resourceMetadata } = found;
  if (!metadata) throw conflict("the server does not say who authorizes clients");
  const resource = resourceMetadata?.resource;
  if (resource && !checkResourceAllowed({ requestedResource: url, configuredResource: resource })) {
    throw conflict("the server names another resource than itself");
  }
  checkTamperProof(String(found.authorizationServerUrl), "the authorization server");
  const { authorization_endpoint, token_endpoint, registration_endpoint } = metadata;
  // The owner's browser opens one of them, and codes and tokens are sent to the others.
  for (const endpoint of [authorization_endpoint, token_endpoint, registration_endpoint]) {
    if (endpoint !== undefined) checkTamperProof(endpoint, "the authorization server");
  }
  const scope = challenge.scope ?? resourceMetadata?.scopes_supported?.join(" ");
  return {
    server_url: String(found.authorizationServerUrl),
    metadata: usedMetadata(metadata),
    ...(resource && { resource }),
    ...(scope && { scope }),
  };
}

async function challengeOf(url: string, fetchFn: FetchLike) {
  const params = {
    protocolVersion: LATEST_PROTOCOL_VERSION,
    capabilities: {},
    clientInfo: { name: "parley", version: VERSION },
  };
  const response = await fetchFn(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
  });
  await response.body?.cancel();
  return extractWWWAuthenticateParams(response);
}

/** Others could read tokens that are sent by http, except on this machine. */
function checkTamperProof(address: string, whose: string): void {
  if (!isTamperProof(address)) throw conflict(`${whose} has no https address`);
}

/** The part of what an authorization server says that is needed later. */
const usedMetadata = (metadata: AuthorizationServerMetadata): AuthorizationServerMetadata => ({
  issuer: metadata.issuer,
  authorization_endpoint: metadata.authorization_endpoint,
  token_endpoint: metadata.token_endpoint,
  registration_endpoint: metadata.registration_endpoint,
  response_types_supported: metadata.response_types_supported,
  code_challenge_methods_supported: metadata.code_challenge_methods_supported,
  token_endpoint_auth_methods_supported: metadata.token_endpoint_auth_methods_supported,
  client_id_metadata_document_supported: metadata.client_id_metadata_document_supported,
  authorization_response_iss_parameter_supported:
    metadata.authorization_response_iss_parameter_supported,
});

/** The client that is known already, or a new one. */
async function clientOf(
  { server_url, metadata }: Discovered,
  known: OAuthSecrets | undefined,
  base: string,
  fetchFn: FetchLike,
  scope: string | undefined,
): Promise<OAuthClientInformationMixed> {
  const isKnown = known?.metadata.issuer === metadata.issuer;
  if (isKnown && known.redirect_url === `${base}${CALLBACK_PATH}`) return known.client;
  if (metadata.client_id_metadata_document_supported === true && base.startsWith("https:")) {
    return { client_id: `${base}${CLIENT_PATH}` };
  }
  if (!metadata.registration_endpoint) {
    throw conflict("the authorization server does not let clients register");
  }
  const { client_id, client_secret, token_endpoint_auth_method } = await registerClient(
    server_url,
    { metadata, clientMetadata: clientMetadata(base), ...(scope && { scope }), fetchFn },
  );
  return {
    client_id,
    ...(client_secret && { client_secret }),
    ...(token_endpoint_auth_method && { token_endpoint_auth_method }),
  } as OAuthClientInformationMixed;
}
