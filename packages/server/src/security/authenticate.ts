import { rename } from "../domain/groups.ts";
import type { SecurityLog } from "../observe/security-log.ts";
import { agentsOf, type ProviderNames } from "../rules/agents.ts";
import { Failure, unauthorized } from "../rules/failure.ts";
import { usernameCandidates, usernameFrom } from "../rules/usernames.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { SessionRecord } from "../store/sessions.ts";
import type { Store, WriteTx } from "../store/store.ts";
import type { Caller, Origin } from "./caller.ts";
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

export function authenticator({
  store,
  oidc,
  providers,
  limits,
  security,
}: AuthenticatorOptions): Authenticator {
  const entering = new Map<string, Promise<unknown>>();

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
    const { account, isNew, isLinked } = await oneAtATime(issued.subject, () =>
      untilUncontested(() => enter(hash, issued, origin)),
    );
    const about = { account: account.username, origin, issuer: issued.issuer };
    if (isNew) security.record("oidc_account_created", about);
    if (isLinked) security.record("oidc_account_linked", about);
    const made = await bySession(hash);
    if (!made) throw expired();
    security.record("sign_in", { ...about, session_id: made.id, method: "oidc" });
    return made;
  }

  /** Calls of one subject that come at the same moment would all make its account. */
  async function oneAtATime<Result>(subject: string, work: () => Promise<Result>): Promise<Result> {
    const turn = (entering.get(subject) ?? Promise.resolve()).then(work, work);
    entering.set(subject, turn);
    try {
      return await turn;
    } finally {
      if (entering.get(subject) === turn) entering.delete(subject);
    }
  }

  const enter = (hash: string, issued: Identity, origin: Origin) =>
    store.write(async (tx) => {
      const found = await accountOf(tx, issued);
      const { account } = found;
      const { display_name } = issued;
      if (display_name !== null && display_name !== account.display_name) {
        await rename(tx, account, display_name);
      }
      await tx.insertSession({
        id: Bun.randomUUIDv7(),
        token_hash: hash,
        account_id: account.id,
        user_agent: origin.user_agent,
        at: Date.now(),
        expires_at: issued.expires_at,
      });
      return found;
    });

  /** The account of an identity. A new identity gets a new account, and never one with a password. */
  async function accountOf(tx: WriteTx, issued: Identity): Promise<Found> {
    const { issuer, subject, wish } = issued;
    const known = await tx.identity(issuer, subject);
    if (known) return { account: known, isNew: false, isLinked: false };
    const username = usernameFrom(wish);
    const earlier = username === wish ? await tx.unlinkedAccount(username) : null;
    const account = earlier ?? (await makeNamed(tx, issued, username));
    const identity = { issuer, subject, account_id: account.id, at: Date.now() };
    if (!(await tx.insertIdentity(identity))) throw new IdentityTaken();
    return { account, isNew: earlier === null, isLinked: earlier !== null };
  }

  async function makeNamed(tx: WriteTx, issued: Identity, wish: string): Promise<AccountRecord> {
    for (const username of usernameCandidates(wish)) {
      if (await tx.account(username)) continue;
      const display_name = issued.display_name ?? username;
      const made = await tx.insertAccount({
        username,
        display_name,
        kind: "human",
        at: Date.now(),
      });
      if (made) return giveAgents(tx, made, providers);
      // Whoever has just taken the name may be the same person on another node.
      if (await tx.identity(issued.issuer, issued.subject)) throw new IdentityTaken();
    }
    throw new Error("there is no username left");
  }

  const verified = (issuer: Oidc, token: string, origin: Origin) =>
    issuer.verify(token).catch((error) => {
      if (error instanceof Failure && error.code === "unauthorized") {
        security.recordOnce("oidc_token_refused", origin.network, { origin });
      }
      throw error;
    });

  return {
    async authenticate(token, origin) {
      if (!token) throw unauthorized("an access token is required");
      if (oidc?.recognises(token))
        return byIdentity(token, await verified(oidc, token, origin), origin);
      return byOpaqueToken(token);
    },
    renew: (sessionId, expiresAt) =>
      store.write((tx) => tx.touchSession(sessionId, Date.now(), expiresAt)),
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
  const account = await tx.insertAccount({ ...person, kind: "human", at: Date.now() });
  if (!account) throw new UsernameTaken();
  return giveAgents(tx, account, providers);
}

async function giveAgents(tx: WriteTx, owner: AccountRecord, providers: ProviderNames) {
  const at = Date.now();
  for (const agent of agentsOf(owner, providers)) await tx.insertAccount({ ...agent, at });
  return owner;
}

export class UsernameTaken extends Error {}

/** An identity was given its account by another node at the same moment. */
class IdentityTaken extends Error {}

const TRIES = 5;

/** What another node has just made is found the next time. */
async function untilUncontested<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof IdentityTaken) || tries === TRIES) throw error;
    }
  }
}

interface Found {
  readonly account: AccountRecord;
  readonly isNew: boolean;
  /** Whether it was made by an earlier version, which knew it by its name alone. */
  readonly isLinked: boolean;
}
