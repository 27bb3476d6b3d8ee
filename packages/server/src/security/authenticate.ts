import { unauthorized } from "../failure.ts";
import type { Caller, Origin } from "../operation.ts";
import { agentsOf, type ProviderNames } from "../rules/agents.ts";
import type { AccountRecord, SessionRecord, Store, WriteTx } from "../store/store.ts";
import type { Identity, Oidc } from "./oidc.ts";
import { hashToken, SESSION_MS } from "./tokens.ts";

/** How stale `last_used_at` may become before a call writes it again. */
const TOUCH_MS = 60_000;

export interface Authenticated extends Caller {
  readonly expires_at: number;
  /** Whether using the session prolongs it; an issuer's token ends when it says. */
  readonly sliding: boolean;
}

export interface Authenticator {
  /** Throws `unauthorized` for a token that is missing, unknown, expired or signed out. */
  authenticate(token: string | null, origin: Origin): Promise<Authenticated>;
}

export function authenticator(
  store: Store,
  oidc: Oidc | null,
  providers: ProviderNames,
): Authenticator {
  async function bySession(hash: string): Promise<SessionRecord | null> {
    const session = await store.read((tx) => tx.session(hash));
    if (session && (session.ended_at !== null || session.expires_at <= Date.now())) throw expired();
    return session;
  }

  /** Sessions slide: one that is used stays alive. */
  async function byOpaqueToken(token: string): Promise<Authenticated> {
    const session = await bySession(hashToken(token));
    if (!session) throw expired();
    const { id, account, last_used_at } = session;
    const now = Date.now();
    const stale = now - last_used_at >= TOUCH_MS;
    const expires_at = stale ? now + SESSION_MS : session.expires_at;
    if (stale) await store.write((tx) => tx.touchSession(id, now, expires_at));
    return { account, session_id: id, expires_at, sliding: true };
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
    return { account, session_id: id, expires_at, sliding: false };
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
