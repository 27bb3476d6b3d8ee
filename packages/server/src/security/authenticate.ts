import { isExternal } from "../rules/agents.ts";
import { badField, Failure, forbidden, suspended, unauthorized } from "../rules/failure.ts";
import { hashToken } from "../rules/tokens.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { SessionRecord } from "../store/sessions.ts";
import type { Store } from "../store/store.ts";
import type { AuditLog } from "./audit-log.ts";
import type { AgentCaller, AnyCaller, Origin, ServiceKey, SessionCaller } from "./caller.ts";
import type { OidcAccounts, OidcTokens } from "./oidc.ts";
import { isStale, isTokenOf, type SessionLimits, sessionEnd } from "./tokens.ts";

interface Validity {
  readonly expires_at: number;
  /** When the session began, if use extends it; null if its end is fixed. */
  readonly renewable_since: number | null;
}

type AuthenticatedSession = SessionCaller & Validity;

/** A person or an external agent, by a token of their own. */
export type Authenticated = AuthenticatedSession | (AgentCaller & Validity);

/** What a request says of its caller. */
interface Credentials {
  readonly token: string | null;
  /** The value of `x-parley-as`: a username, or `id:` and an external id. */
  readonly actsFor: string | null;
  /** Whether it has an `Origin` header, as requests of browsers do. */
  readonly isFromBrowser: boolean;
}

/** The header that names the person whom a service key acts for. */
export const ACTS_FOR = "x-parley-as";

/** The name of the key that PARLEY_SERVICE_KEY_FILE gives, in the audit log. No other can have it. */
const CONFIGURED: ServiceKey = { name: "(PARLEY_SERVICE_KEY_FILE)" };

export type Authenticator = ReturnType<typeof createAuthenticator>;

export interface AuthenticatorOptions {
  readonly store: Store;
  /** Null: tokens of an issuer are not accepted. */
  readonly oidcTokens: OidcTokens | null;
  readonly oidcAccounts: OidcAccounts;
  /** The hash of the key that PARLEY_SERVICE_KEY_FILE gives. */
  readonly serviceKeyHash?: string | null;
  readonly limits: SessionLimits;
  readonly audit: AuditLog;
}

export function createAuthenticator(options: AuthenticatorOptions) {
  const { store, oidcTokens, oidcAccounts, serviceKeyHash, limits, audit } = options;

  /** Throws `unauthorized` for a token that is missing, unknown, expired or signed out, or `suspended`. */
  async function authenticate(token: string | null, origin: Origin): Promise<Authenticated> {
    if (!token) throw unauthorized("an access token is required");
    if (isTokenOf("service", token)) throw forbidden("service keys are for HTTP calls only");
    if (isTokenOf("agent", token)) {
      // It ends when it is revoked.
      const expires_at = Number.POSITIVE_INFINITY;
      return { ...(await agentOf(token, origin)), expires_at, renewable_since: null };
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

  /** The token is verified on every call. Its stored session can be revoked, and ends with the token. */
  async function sessionOfIssuedToken(tokens: OidcTokens, token: string, origin: Origin) {
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

  /** Throws `unauthorized` for a token that is unknown or revoked, and `suspended` while the owner is. */
  async function agentOf(token: string, origin: Origin): Promise<AgentCaller> {
    const { found, agent } = await store.read(async (tx) => {
      const record = await tx.agentToken(hashToken(token));
      return { found: record, agent: record && (await tx.agent(record.account.id)) };
    });
    const isErased = agent?.account.erased_at !== null || agent.owner.erased_at !== null;
    if (!found || !agent || isErased || !isExternal(agent.account)) {
      audit.recordOnce("agent_token_refused", origin.network, { origin });
      throw unauthorized("the token is unknown or revoked");
    }
    if (agent.owner.suspended_at !== null) throw suspended();
    const now = Date.now();
    if (isStale(found.last_used_at, now)) {
      await store.write((tx) => tx.touchAgentToken(found.id, now));
    }
    return { kind: "agent", account: agent.account, token_id: found.id };
  }

  async function serviceKeyOf(token: string): Promise<ServiceKey | null> {
    const hash = hashToken(token);
    if (hash === serviceKeyHash) return CONFIGURED;
    const found = await store.read((tx) => tx.serviceKey(hash));
    if (!found) return null;
    const { name, last_used_at } = found;
    const now = Date.now();
    if (isStale(last_used_at, now)) await store.write((tx) => tx.touchServiceKey(name, now));
    return { name };
  }

  return {
    authenticate,
    /**
     * The caller of a request, which may have a service key too. Besides throws `forbidden`, or
     * `bad_request` when nobody is named as `x-parley-as` says.
     */
    async authenticateRequest(
      { token, actsFor, isFromBrowser }: Credentials,
      origin: Origin,
    ): Promise<AnyCaller | AgentCaller> {
      if (!token || !isTokenOf("service", token)) {
        if (actsFor !== null) throw badField(ACTS_FOR, "needs a service key");
        return authenticate(token, origin);
      }
      if (isFromBrowser) {
        audit.recordOnce("service_key_refused", `browser ${origin.network}`, { origin });
        throw forbidden("a service key must not be used in a browser");
      }
      const key = await serviceKeyOf(token);
      if (!key) {
        audit.recordOnce("service_key_refused", origin.network, { origin });
        throw unauthorized("the service key is unknown or revoked");
      }
      if (actsFor === null) return { kind: "service", key };
      return { kind: "delegate", key, account: await personNamed(store, actsFor) };
    },
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

async function personNamed(store: Store, name: string): Promise<AccountRecord> {
  const account = await store.read((tx) =>
    name.startsWith("id:")
      ? tx.accountByExternalId(name.slice("id:".length))
      : tx.account(name.toLowerCase()),
  );
  if (account?.kind !== "human" || account.erased_at !== null) {
    throw badField(ACTS_FOR, "names nobody");
  }
  if (account.suspended_at !== null) throw suspended();
  return account;
}
