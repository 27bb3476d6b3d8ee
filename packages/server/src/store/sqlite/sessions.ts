import { ACCOUNT, iso } from "../rows.ts";
import type { AccountRecord, ReadTx, SessionRecord, WriteTx } from "../store.ts";
import type { Connection } from "./connection.ts";

type Reads = Pick<ReadTx, "session" | "sessions">;
type Writes = Pick<WriteTx, "insertSession" | "touchSession" | "endSession">;

type SessionRow = Omit<SessionRecord, "account" | "id"> & AccountRecord & { session_id: string };
type ListedRow = {
  id: string;
  created_at: number;
  last_used_at: number;
  user_agent: string | null;
};

export function sessionReads(db: Connection): Reads {
  const byHash = db.query<SessionRow>(
    `SELECT s.id AS session_id, s.last_used_at, s.expires_at, s.ended_at, ${ACCOUNT}
     FROM sessions s JOIN accounts a ON a.id = s.account_id WHERE s.token_hash = ?`,
  );
  const byAccount = db.query<ListedRow>(
    `SELECT id, created_at, last_used_at, user_agent FROM sessions
     WHERE account_id = ? AND expires_at > ? AND ended_at IS NULL ORDER BY last_used_at DESC, id DESC`,
  );
  return {
    session: (tokenHash) => {
      const row = byHash.get(tokenHash);
      if (!row) return null;
      const { session_id: id, last_used_at, expires_at, ended_at, ...account } = row;
      return { id, account, last_used_at, expires_at, ended_at };
    },
    sessions: (accountId, now) =>
      byAccount.all(accountId, now).map((row) => ({
        ...row,
        created_at: iso(row.created_at),
        last_used_at: iso(row.last_used_at),
      })),
  };
}

export function sessionWrites(db: Connection): Writes {
  const insert = db.change(
    `INSERT INTO sessions (id, token_hash, account_id, user_agent, created_at, last_used_at, expires_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6) ON CONFLICT (token_hash) DO NOTHING`,
  );
  const touch = db.change("UPDATE sessions SET last_used_at = ?2, expires_at = ?3 WHERE id = ?1");
  const end = db.change(
    "UPDATE sessions SET ended_at = ?3 WHERE id = ?1 AND account_id = ?2 AND ended_at IS NULL",
  );
  return {
    insertSession: (session) =>
      void insert.run(
        session.id,
        session.token_hash,
        session.account_id,
        session.user_agent,
        session.at,
        session.expires_at,
      ),
    touchSession: (id, lastUsedAt, expiresAt) => void touch.run(id, lastUsedAt, expiresAt),
    endSession: (id, accountId, at) => end.run(id, accountId, at).changes > 0,
  };
}
