import type { AccountRecord } from "../accounts.ts";
import { ACCOUNT, iso } from "../rows.ts";
import type { SessionRecord } from "../sessions.ts";
import type { Methods } from "./unit.ts";

type SessionRow = Omit<SessionRecord, "account" | "id"> & AccountRecord & { session_id: string };
type ListedRow = {
  id: string;
  created_at: number;
  last_used_at: number;
  user_agent: string | null;
};

export const sessionReads: Methods<"session" | "sessions" | "signedInFrom"> = {
  session: async (unit, tokenHash) => {
    const row = await unit.get<SessionRow>(
      `SELECT s.id AS session_id, s.created_at, s.last_used_at, s.expires_at, s.ended_at, ${ACCOUNT}
       FROM sessions s JOIN accounts a ON a.id = s.account_id WHERE s.token_hash = $1`,
      tokenHash,
    );
    if (!row) return null;
    const { session_id: id, created_at, last_used_at, expires_at, ended_at, ...account } = row;
    return { id, account, created_at, last_used_at, expires_at, ended_at };
  },
  signedInFrom: async (unit, accountId, network) => {
    const row = await unit.get(
      "SELECT 1 FROM sessions WHERE account_id = $1 AND network = $2 LIMIT 1",
      accountId,
      network,
    );
    return row !== null;
  },
  sessions: async (unit, accountId, now) => {
    const rows = await unit.all<ListedRow>(
      `SELECT id, created_at, last_used_at, user_agent FROM sessions
       WHERE account_id = $1 AND expires_at > $2 AND ended_at IS NULL
       ORDER BY last_used_at DESC, id DESC`,
      accountId,
      now,
    );
    return rows.map((row) => ({
      ...row,
      created_at: iso(row.created_at),
      last_used_at: iso(row.last_used_at),
    }));
  },
};

export const sessionWrites: Methods<
  "insertSession" | "touchSession" | "endSession" | "purgeSessions"
> = {
  insertSession: async (unit, session) => {
    await unit.change(
      `INSERT INTO sessions
         (id, token_hash, account_id, user_agent, network, created_at, last_used_at, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, $6, $7) ON CONFLICT (token_hash) DO NOTHING`,
      session.id,
      session.token_hash,
      session.account_id,
      session.user_agent,
      session.network ?? null,
      session.at,
      session.expires_at,
    );
  },
  touchSession: async (unit, id, lastUsedAt, expiresAt) => {
    await unit.change(
      "UPDATE sessions SET last_used_at = $2, expires_at = $3 WHERE id = $1",
      id,
      lastUsedAt,
      expiresAt,
    );
  },
  endSession: async (unit, id, accountId, at) => {
    const ended = await unit.change(
      "UPDATE sessions SET ended_at = $3 WHERE id = $1 AND account_id = $2 AND ended_at IS NULL",
      id,
      accountId,
      at,
    );
    return ended.count > 0;
  },
  purgeSessions: async (unit, before, most) => {
    const purged = await unit.change(
      "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at < $1 LIMIT $2)",
      before,
      most,
    );
    return purged.count;
  },
};
