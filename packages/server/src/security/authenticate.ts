import type { SecurityLog } from "../observe/security-log.ts";
import type { ProviderNames } from "../rules/agents.ts";
import { Failure, forbidden, suspended, unauthorized } from "../rules/failure.ts";
import type { SessionRecord } from "../store/sessions.ts";
import type { Store } from "../store/store.ts";
import type { Origin, SessionCaller } from "./caller.ts";
import type { Identity, Oidc } from "./oidc.ts";
import { oidcAccounts } from "./oidc-accounts.ts";
import { isServiceKey } from "./service-keys.ts";
import { hashToken, type SessionLimits, sessionEnd } from "./tokens.ts";

/** How old `last_used_at` may become before a call updates it. */
const TOUCH_MS = 60_000;

export interface Authenticated extends SessionCaller {
  readonly expires_at: number;
  /** When the session began, if use extends it; null if its end is fixed. */
  readonly renewable_since: number | null;
}

export interface Authenticator {
  /** Throws `unauthorized` for a token that is missing, unknown, expired or signed out, or `suspended`. */
  authenticate(token: string | null, origin: Origin): Promise<Authenticated>;
  /** Extends a session that an open socket uses. */
  renew(sessionId: string, expiresAt: number): Promise<void>;
}

export interface AuthenticatorOptions {
  readonly store: Store;
  readonly oidc: Oidc | null;
  readonly providers: ProviderNames;
  readonly limits: SessionLimits;
  readonly security: SecurityLog;
}

export function authenticator(options: AuthenticatorOptions): Authenticator {
  const { store, oidc, providers, limits, security } = options;
  const accounts = oidcAccounts({ security, providers });

  async function authenticate(token: string | null, origin: Origin): Promise<Authenticated> {
    if (!token) throw unauthorized("an access token is required");
    if (isServiceKey(token)) throw forbidden("service keys are for HTTP calls only");
    if (!oidc?.recognises(token)) return byAccessToken(token);
    const identity = await oidc.verify(token).catch(recordRefusal(security, origin));
    return byIdentity(token, identity, origin);
  }

  /** Using a session extends it, unless its end is fixed. */
  async function byAccessToken(token: string): Promise<Authenticated> {
    const session = await activeSession(store, hashToken(token));
    if (!session) throw expired();
    const { id, account, created_at, last_used_at, fixed } = session;
    const now = Date.now();
    const end = fixed ? session.expires_at : sessionEnd(created_at, now, limits);
    if (end <= now) throw expired();
    const isStale = now - last_used_at >= TOUCH_MS;
    if (isStale) await store.write((tx) => tx.touchSession(id, now, end));
    const expires_at = isStale ? end : Math.min(end, session.expires_at);
    const renewable_since = fixed ? null : created_at;
    return { kind: "session", account, session_id: id, expires_at, renewable_since };
  }

  /** The token is verified on every call. Its session is stored so that it can be listed and revoked. */
  async function byIdentity(
    token: string,
    identity: Identity,
    origin: Origin,
  ): Promise<Authenticated> {
    const hash = hashToken(token);
    const session = (await activeSession(store, hash)) ?? (await signIn(hash, identity, origin));
    const { id, account, expires_at } = session;
    return { kind: "session", account, session_id: id, expires_at, renewable_since: null };
  }

  async function signIn(hash: string, identity: Identity, origin: Origin): Promise<SessionRecord> {
    await accounts.signIn(hash, identity, origin);
    const session = await activeSession(store, hash);
    if (!session) throw expired();
    return session;
  }

  return {
    authenticate,
    renew: (sessionId, expiresAt) =>
      store.write((tx) => tx.touchSession(sessionId, Date.now(), expiresAt)),
  };
}

/** The session of a token hash; null if there is none. Throws if it is over or its account suspended. */
async function activeSession(store: Store, hash: string): Promise<SessionRecord | null> {
  const session = await store.read((tx) => tx.session(hash));
  if (session && session.account.suspended_at !== null) throw suspended();
  if (session && (session.ended_at !== null || session.expires_at <= Date.now())) throw expired();
  return session;
}

/** Records that a token of the issuer was refused, and throws the error again. */
const recordRefusal =
  (security: SecurityLog, origin: Origin) =>
  (error: unknown): never => {
    if (error instanceof Failure && error.code === "unauthorized") {
      security.recordOnce("oidc_token_refused", origin.network, { origin });
    }
    throw error;
  };

const expired = () => unauthorized("the access token is unknown or expired");
