import { Failure, forbidden, suspended, unauthorized } from "../rules/failure.ts";
import { hashToken } from "../rules/tokens.ts";
import type { SessionRecord } from "../store/sessions.ts";
import type { Store } from "../store/store.ts";
import { agentOfToken, isAgentToken } from "./agent-tokens.ts";
import type { AuditLog } from "./audit-log.ts";
import type { AgentCaller, Origin, SessionCaller } from "./caller.ts";
import type { OidcAccounts, OidcTokens } from "./oidc.ts";
import { isServiceKey } from "./service-keys.ts";
import { isStale, type SessionLimits, sessionEnd } from "./tokens.ts";

interface Validity {
  readonly expires_at: number;
  /** When the session began, if use extends it; null if its end is fixed. */
  readonly renewable_since: number | null;
}

type AuthenticatedSession = SessionCaller & Validity;

/** A person or an external agent, by a token of their own. */
export type Authenticated = AuthenticatedSession | (AgentCaller & Validity);

export type Authenticator = ReturnType<typeof createAuthenticator>;

export interface AuthenticatorOptions {
  readonly store: Store;
  /** Null: tokens of an issuer are not accepted. */
  readonly oidcTokens: OidcTokens | null;
  readonly oidcAccounts: OidcAccounts;
  readonly limits: SessionLimits;
  readonly audit: AuditLog;
}

export function createAuthenticator(options: AuthenticatorOptions) {
  const { store, oidcTokens, oidcAccounts, limits, audit } = options;

  /** Throws `unauthorized` for a token that is missing, unknown, expired or signed out, or `suspended`. */
  async function authenticate(token: string | null, origin: Origin): Promise<Authenticated> {
    if (!token) throw unauthorized("an access token is required");
    if (isServiceKey(token)) throw forbidden("service keys are for HTTP calls only");
    if (isAgentToken(token)) {
      // It ends when it is revoked.
      const expires_at = Number.POSITIVE_INFINITY;
      return { ...(await agentOfToken(options, token, origin)), expires_at, renewable_since: null };
    }
    const session = oidcTokens?.recognises(token)
      ? await sessionOfIssuedToken(oidcTokens, token, origin)
      : await activeSession(store, hashToken(token));
    if (!session) throw expired();
    return used(session);
  }

  /** Using a session extends it, unless its end is fixed. */
  async function used(session: SessionRecord): Promise<AuthenticatedSession> {
    const { id, account, created_at, last_used_at, fixed } = session;
    const now = Date.now();
    const end = fixed ? session.expires_at : sessionEnd(created_at, now, limits);
    if (end <= now) throw expired();
    const isDue = isStale(last_used_at, now);
    if (isDue) await store.write((tx) => tx.touchSession(id, now, end));
    const expires_at = isDue ? end : Math.min(end, session.expires_at);
    const renewable_since = fixed ? null : created_at;
    return { kind: "session", account, session_id: id, expires_at, renewable_since };
  }

  /**
   * The token is verified on every call. Its session is stored so that it can be listed and revoked, and
   * ends with the token.
   */
  async function sessionOfIssuedToken(
    tokens: OidcTokens,
    token: string,
    origin: Origin,
  ): Promise<SessionRecord | null> {
    const { identity, expires_at } = await tokens.verify(token).catch((error) => {
      if (error instanceof Failure && error.code === "unauthorized") {
        audit.recordOnce("oidc_token_refused", origin.network, { origin });
      }
      throw error;
    });
    const token_hash = hashToken(token);
    const known = await activeSession(store, token_hash);
    if (known) return { ...known, fixed: true };
    await oidcAccounts.signIn(identity, origin, async (tx, { id: account_id }) => {
      const session_id = Bun.randomUUIDv7();
      const { user_agent } = origin;
      const session = { id: session_id, token_hash, account_id, user_agent, expires_at };
      await tx.insertSession({ ...session, at: Date.now() });
      return { session_id, result: undefined };
    });
    const created = await activeSession(store, token_hash);
    return created && { ...created, fixed: true };
  }

  return {
    authenticate,
    /** Stores that an open socket uses a session, and when the session ends, or that it uses a token. */
    renew: (kind: Authenticated["kind"], id: string, expiresAt: number): Promise<void> =>
      store.write((tx) =>
        kind === "agent"
          ? tx.touchAgentToken(id, Date.now())
          : tx.touchSession(id, Date.now(), expiresAt),
      ),
  };
}

/** The session of a token hash; null if there is none. Throws if it is over or its account suspended. */
async function activeSession(store: Store, hash: string): Promise<SessionRecord | null> {
  const session = await store.read((tx) => tx.session(hash));
  if (session && session.account.erased_at !== null) throw expired();
  if (session && session.account.suspended_at !== null) throw suspended();
  if (session && (session.ended_at !== null || session.expires_at <= Date.now())) throw expired();
  return session;
}

const expired = () => unauthorized("the access token is unknown or expired");
