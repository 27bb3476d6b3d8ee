import type { SessionReads, SessionWrites } from "../sessions.ts";
import { ACCOUNT } from "../shared/accounts.ts";
import {
  type ListedSessionRow,
  type SessionRow,
  toListedSession,
  toSession,
} from "../shared/sessions.ts";
import type { Connection } from "./connection.ts";

export function sessionReads(db: Connection): SessionReads {
  const byHash = db.query<SessionRow>(
    `SELECT s.id AS session_id, s.created_at, s.last_used_at, s.expires_at, s.fixed,
       s.ended_at, ${ACCOUNT}
     FROM sessions s JOIN accounts a ON a.id = s.account_id WHERE s.token_hash = ?`,
  );
  const byAccount = db.query<ListedSessionRow>(
    `SELECT id, created_at, last_used_at, user_agent FROM sessions
     WHERE account_id = ? AND expires_at > ? AND ended_at IS NULL ORDER BY last_used_at DESC, id DESC`,
  );
  const fromNetwork = db.query<object>(
    "SELECT 1 FROM sessions WHERE account_id = ? AND network = ? LIMIT 1",
  );
  const ended = db.query<object>(
    `SELECT 1 FROM sessions s JOIN accounts a ON a.id = s.account_id
     WHERE s.id = ? AND (s.ended_at IS NOT NULL OR a.suspended_at IS NOT NULL)`,
  );
  return {
    session: (tokenHash) => {
      const row = byHash.get(tokenHash);
      return row && toSession(row);
    },
    hasSessionEnded: (id) => ended.get(id) !== null,
    signedInFrom: (accountId, network) => fromNetwork.get(accountId, network) !== null,
    sessions: (accountId, now) => byAccount.all(accountId, now).map(toListedSession),
  };
}

export function sessionWrites(db: Connection): SessionWrites {
  const insert = db.change(
    `INSERT INTO sessions
       (id, token_hash, account_id, user_agent, network, created_at, last_used_at, expires_at,
        fixed)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8) ON CONFLICT (token_hash) DO NOTHING`,
  );
  const touch = db.change("UPDATE sessions SET last_used_at = ?2, expires_at = ?3 WHERE id = ?1");
  const end = db.change(
    "UPDATE sessions SET ended_at = ?3 WHERE id = ?1 AND account_id = ?2 AND ended_at IS NULL",
  );
  const purge = db.change(
    "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at < ? LIMIT ?)",
  );
  return {
    insertSession: (session) =>
      void insert.run(
        session.id,
        session.token_hash,
        session.account_id,
        session.user_agent,
        session.network ?? null,
        session.at,
        session.expires_at,
        session.fixed ? 1 : 0,
      ),
    touchSession: (id, lastUsedAt, expiresAt) => void touch.run(id, lastUsedAt, expiresAt),
    endSession: (id, accountId, at) => end.run(id, accountId, at).changes > 0,
    purgeSessions: (before, most) => purge.run(before, most).changes,
  };
}
