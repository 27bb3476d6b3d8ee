import { unauthorized } from "../failure.ts";
import type { Caller, Origin } from "../operation.ts";
import { agentsOf, type ProviderNames } from "../rules/agents.ts";
import type { AccountRecord, SessionRecord, Store, WriteTx } from "../store/store.ts";
import type { Identity, Oidc } from "./oidc.ts";
import { hashToken, type SessionLimits, sessionEnd } from "./tokens.ts";

/** How stale `last_used_at` may become before a call writes it again. */
const TOUCH_MS = 60_000;

export interface Authenticated extends Caller {
  readonly expires_at: number;
  /** When the session began, if using it prolongs it; null for an issuer's token, which ends when it says. */
  readonly renewable_since: number | null;
}

export interface Authenticator {
  /** Throws `unauthorized` for a token that is missing, unknown, expired or signed out. */
  authenticate(token: string | null, origin: Origin): Promise<Authenticated>;
}

export interface AuthenticatorOptions {
  readonly store: Store;
  readonly oidc: Oidc | null;
  readonly providers: ProviderNames;
  readonly limits: SessionLimits;
}

export function authenticator({
  store,
  oidc,
  providers,
  limits,
}: AuthenticatorOptions): Authenticator {
  async function bySession(hash: string): Promise<SessionRecord | null> {
    const session = await store.read((tx) => tx.session(hash));
    if (session && (session.ended_at !== null || session.expires_at <= Date.now())) throw expired();
    return session;
  }

  /** Sessions slide: one that is used stays alive. */
  async function byOpaqueToken(token: string): Promise<Authenticated> {
    const session = await bySession(hashToken(token));
    if (!session) throw expired();
    const { id, account, created_at, last_used_at } = session;
    const now = Date.now();
    const end = sessionEnd(created_at, now, limits);
    if (end <= now) throw expired();
    const stale = now - last_used_at >= TOUCH_MS;
    if (stale) await store.write((tx) => tx.touchSession(id, now, end));
    const expires_at = stale ? end : Math.min(end, session.expires_at);
    return { account, session_id: id, expires_at, renewable_since: created_at };
  }

  /** The issuer's word is checked on every call; the session kept beside it can be revoked here. */
  async function byIdentity(
    token: string,
    issued: Identity,
    origin: Origin,
  ): Promise<Authenticated> {
    const hash = hashToken(token);
    const session = (await bySession(hash)) ?? (await remember(hash, issued, origin));
    const { id, account, expires_at } = session;
    return { account, session_id: id, expires_at, renewable_since: null };
  }

  async function remember(hash: string, issued: Identity, origin: Origin) {
    await store.write(async (tx) => {
      const account = await accountOf(tx, issued);
      await tx.insertSession({
        id: Bun.randomUUIDv7(),
        token_hash: hash,
        account_id: account.id,
        user_agent: origin.user_agent,
        at: Date.now(),
        expires_at: issued.expires_at,
      });
    });
    const made = await bySession(hash);
    if (!made) throw expired();
    return made;
  }

  async function accountOf(
    tx: WriteTx,
    { username, display_name }: Identity,
  ): Promise<AccountRecord> {
    const known = await tx.account(username);
    if (known) return known;
    try {
      return await makePerson(tx, { username, display_name }, providers);
    } catch (error) {
      // Another call with the same name was quicker: its account is the one.
      const made = error instanceof UsernameTaken && (await tx.account(username));
      if (made) return made;
      throw error;
    }
  }

  return {
    async authenticate(token, origin) {
      if (!token) throw unauthorized("an access token is required");
      if (oidc?.recognises(token)) return byIdentity(token, await oidc.verify(token), origin);
      return byOpaqueToken(token);
    },
  };
}

const expired = () => unauthorized("the access token is unknown or expired");

export interface NewPerson {
  username: string;
  display_name: string;
  password_hash?: string;
}

/** A person comes with their agents, one for each provider. Throws when the name is taken. */
export async function makePerson(
  tx: WriteTx,
  person: NewPerson,
  providers: ProviderNames,
): Promise<AccountRecord> {
  const at = Date.now();
  const account = await tx.insertAccount({ ...person, kind: "human", at });
  if (!account) throw new UsernameTaken();
  for (const agent of agentsOf(account, providers)) await tx.insertAccount({ ...agent, at });
  return account;
}

export class UsernameTaken extends Error {}
