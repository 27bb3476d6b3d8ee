import type { Session } from "@parley/protocol";
import { iso } from "../rules/time.ts";
import { type AccountRecord, accountAs } from "./account-records.ts";
import { reader, type Sql } from "./sql.ts";

export const sessionReads = {
  /** The session with that token, expired and ended ones included. */
  session: (db: Sql, tokenHash: string) =>
    db.getAs(readSession)`
      SELECT s.id, s.created_at, s.last_used_at, s.expires_at, s.fixed, s.ended_at,
        ${accountAs("account")}
      FROM sessions s JOIN accounts a ON a.id = s.account_id WHERE s.token_hash = ${tokenHash}`,
  /** Whether any session of the account, ended ones included, was opened from this network. */
  signedInFrom: (db: Sql, accountId: number, network: string) =>
    db.exists`
      SELECT 1 FROM sessions WHERE account_id = ${accountId} AND network = ${network} LIMIT 1`,
  /**
   * Whether the session was ended, or its account is suspended. False for a session that is not stored,
   * such as that of an OIDC token.
   */
  hasSessionEnded: (db: Sql, id: string) =>
    db.exists`
      SELECT 1 FROM sessions s JOIN accounts a ON a.id = s.account_id
      WHERE s.id = ${id} AND (s.ended_at IS NOT NULL OR a.suspended_at IS NOT NULL)`,
  /** When the person last proved who they are: at the sign-in, or since. Null for an unknown session. */
  sessionConfirmedAt: (db: Sql, id: string) =>
    db.firstValue<number>`
      SELECT coalesce(confirmed_at, created_at) AS at FROM sessions WHERE id = ${id}`,
  /** Sessions that have neither expired nor ended, most recently used first. */
  async sessions(db: Sql, accountId: number, now: number): Promise<Omit<Session, "current">[]> {
    const rows = await db.all<ListedSessionRow>`
      SELECT id, created_at, last_used_at, user_agent FROM sessions
      WHERE account_id = ${accountId} AND expires_at > ${now} AND ended_at IS NULL
      ORDER BY last_used_at DESC, id DESC`;
    return rows.map((row) => ({
      ...row,
      created_at: iso(row.created_at),
      last_used_at: iso(row.last_used_at),
    }));
  },
};

export const sessionWrites = {
  /** Idempotent: changes nothing when a session with that token exists. */
  async insertSession(db: Sql, { network = null, fixed = false, at, ...session }: NewSession) {
    const row = { ...session, network, fixed, created_at: at, last_used_at: at };
    await db.insert("sessions", row, "ON CONFLICT (token_hash) DO NOTHING");
  },
  /** Stores when a session was last used, and when it expires. */
  touchSession: (db: Sql, id: string, lastUsedAt: number, expiresAt: number) =>
    db.update("sessions", { id }, { last_used_at: lastUsedAt, expires_at: expiresAt }),
  /** Stores that the person of a session has proved again who they are. */
  confirmSession: (db: Sql, id: string, at: number) =>
    db.update("sessions", { id }, { confirmed_at: at }),
  /** Returns false when the account has no such session, or it has ended before. */
  endSession: (db: Sql, id: string, accountId: number, at: number) =>
    db.hasChanged`
      UPDATE sessions SET ended_at = ${at}
      WHERE id = ${id} AND account_id = ${accountId} AND ended_at IS NULL`,
  /** Deletes up to `most` sessions that expired before a time, and returns how many it deleted. */
  purgeSessions: (db: Sql, before: number, most: number) =>
    db.prune("sessions", "expires_at", before, most),
};

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
  network?: string | null;
  at: number;
  expires_at: number;
  /** Whether use does not extend it. Default: false. */
  fixed?: boolean;
}

const readSession = reader<SessionRecord>({ flags: ["fixed"] });

interface ListedSessionRow {
  id: string;
  created_at: number;
  last_used_at: number;
  user_agent: string | null;
}
