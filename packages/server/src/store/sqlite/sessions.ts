import type { SessionReads, SessionWrites } from "../sessions.ts";
import {
  CONFIRM_SESSION,
  CONFIRMED_AT,
  END_SESSION,
  ENDED_SESSION,
  INSERT_SESSION,
  type ListedSessionRow,
  PURGE_SESSIONS,
  SESSION,
  SESSIONS,
  type SessionRow,
  sessionValues,
  toListedSession,
  toSession,
} from "../shared/sessions.ts";
import type { Connection } from "./connection.ts";

export function sessionReads(db: Connection): SessionReads {
  const byHash = db.query<SessionRow>(SESSION);
  const byAccount = db.query<ListedSessionRow>(SESSIONS);
  const fromNetwork = db.query<object>(
    "SELECT 1 FROM sessions WHERE account_id = ? AND network = ? LIMIT 1",
  );
  const ended = db.query<object>(ENDED_SESSION);
  const confirmed = db.query<{ at: number }>(CONFIRMED_AT);
  return {
    session: (tokenHash) => {
      const row = byHash.get(tokenHash);
      return row && toSession(row);
    },
    hasSessionEnded: (id) => ended.get(id) !== null,
    signedInFrom: (accountId, network) => fromNetwork.get(accountId, network) !== null,
    sessionConfirmedAt: (id) => confirmed.get(id)?.at ?? null,
    sessions: (accountId, now) => byAccount.all(accountId, now).map(toListedSession),
  };
}

export function sessionWrites(db: Connection): SessionWrites {
  const insert = db.change(INSERT_SESSION);
  const touch = db.change("UPDATE sessions SET last_used_at = ?2, expires_at = ?3 WHERE id = ?1");
  const confirm = db.change(CONFIRM_SESSION);
  const end = db.change(END_SESSION);
  const purge = db.change(PURGE_SESSIONS);
  return {
    insertSession: (session) => void insert.run(...sessionValues(session)),
    touchSession: (id, lastUsedAt, expiresAt) => void touch.run(id, lastUsedAt, expiresAt),
    confirmSession: (id, at) => void confirm.run(id, at),
    endSession: (id, accountId, at) => end.run(id, accountId, at).changes > 0,
    purgeSessions: (before, most) => purge.run(before, most).changes,
  };
}
