import { iso } from "../../rules/time.ts";
import type { AccountRecord } from "../accounts.ts";
import type { NewSession, SessionRecord } from "../sessions.ts";
import { ACCOUNT, accountOf } from "./accounts.ts";

/** Selects a `SessionRow`: a session with its account. */
export const SESSION = `SELECT s.id AS session_id, s.created_at, s.last_used_at, s.expires_at, s.fixed,
    s.ended_at, ${ACCOUNT}
  FROM sessions s JOIN accounts a ON a.id = s.account_id WHERE s.token_hash = $1`;

/** Selects a row if the session has ended, or its account is suspended. */
export const ENDED_SESSION = `SELECT 1 FROM sessions s JOIN accounts a ON a.id = s.account_id
  WHERE s.id = $1 AND (s.ended_at IS NOT NULL OR a.suspended_at IS NOT NULL)`;

export const CONFIRMED_AT =
  "SELECT coalesce(confirmed_at, created_at) AS at FROM sessions WHERE id = $1";

export const CONFIRM_SESSION = "UPDATE sessions SET confirmed_at = $2 WHERE id = $1";

/** Selects `ListedSessionRow`s. */
export const SESSIONS = `SELECT id, created_at, last_used_at, user_agent FROM sessions
  WHERE account_id = $1 AND expires_at > $2 AND ended_at IS NULL
  ORDER BY last_used_at DESC, id DESC`;

export const INSERT_SESSION = `INSERT INTO sessions (id, token_hash, account_id, user_agent, network,
    created_at, last_used_at, expires_at, fixed)
  VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8) ON CONFLICT (token_hash) DO NOTHING`;

/** The parameters of `INSERT_SESSION`. */
export const sessionValues = (session: NewSession) => [
  session.id,
  session.token_hash,
  session.account_id,
  session.user_agent,
  session.network ?? null,
  session.at,
  session.expires_at,
  session.fixed ?? false,
];

export const END_SESSION =
  "UPDATE sessions SET ended_at = $3 WHERE id = $1 AND account_id = $2 AND ended_at IS NULL";

export const PURGE_SESSIONS =
  "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at < $1 LIMIT $2)";

export type SessionRow = Omit<SessionRecord, "account" | "id" | "fixed"> &
  AccountRecord & { session_id: string; fixed: boolean | number };

export const toSession = (row: SessionRow): SessionRecord => ({
  id: row.session_id,
  account: accountOf(row),
  created_at: row.created_at,
  last_used_at: row.last_used_at,
  expires_at: row.expires_at,
  fixed: Boolean(row.fixed),
  ended_at: row.ended_at,
});

export interface ListedSessionRow {
  id: string;
  created_at: number;
  last_used_at: number;
  user_agent: string | null;
}

export const toListedSession = (row: ListedSessionRow) => ({
  ...row,
  created_at: iso(row.created_at),
  last_used_at: iso(row.last_used_at),
});
