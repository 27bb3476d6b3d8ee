import type { Session } from "@parley/protocol";
import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

export interface SessionReads {
  /** The session with that token, expired and ended ones included. */
  session(tokenHash: string): Awaitable<SessionRecord | null>;
  /** Whether any session of the account, ended ones included, was opened from this network. */
  signedInFrom(accountId: number, network: string): Awaitable<boolean>;
  /**
   * Whether the session was ended, or its account is suspended. False for a session that is not stored,
   * such as that of an OIDC token.
   */
  hasSessionEnded(id: string): Awaitable<boolean>;
  /** When the person last proved who they are: at the sign-in, or since. Null for an unknown session. */
  sessionConfirmedAt(id: string): Awaitable<number | null>;
  /** Sessions that have neither expired nor ended, most recently used first. */
  sessions(accountId: number, now: number): Awaitable<Omit<Session, "current">[]>;
}

export interface SessionWrites {
  /** Idempotent: changes nothing when a session with that token exists. */
  insertSession(session: NewSession): Awaitable<void>;
  /** Stores when a session was last used, and when it expires. */
  touchSession(id: string, lastUsedAt: number, expiresAt: number): Awaitable<void>;
  /** Stores that the person of a session has proved again who they are. */
  confirmSession(id: string, at: number): Awaitable<void>;
  /** Returns false when the account has no such session, or it has ended before. */
  endSession(id: string, accountId: number, at: number): Awaitable<boolean>;
  /** Deletes up to `most` sessions that expired before a time, and returns how many it deleted. */
  purgeSessions(before: number, most: number): Awaitable<number>;
}

export interface SessionRecord {
  readonly id: string;
  readonly account: AccountRecord;
  readonly created_at: number;
  readonly last_used_at: number;
  readonly expires_at: number;
  /** Whether it ends at `expires_at`, however it is used. */
  readonly fixed: boolean;
  /** Set when it was signed out or revoked. */
  readonly ended_at: number | null;
}

export interface NewSession {
  id: string;
  token_hash: string;
  account_id: number;
  user_agent: string | null;
  /** Fingerprint of the network it was opened from. */
  network?: string;
  at: number;
  expires_at: number;
  /** Whether use does not extend it. Default: false. */
  fixed?: boolean;
}
