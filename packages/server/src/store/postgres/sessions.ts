import type { SessionReads, SessionWrites } from "../sessions.ts";
import { ACCOUNT } from "../shared/accounts.ts";
import {
  type ListedSessionRow,
  type SessionRow,
  toListedSession,
  toSession,
} from "../shared/sessions.ts";
import type { Methods } from "./unit.ts";

export const sessionReads: Methods<keyof SessionReads> = {
  session: async (unit, tokenHash) => {
    const row = await unit.get<SessionRow>(
      `SELECT s.id AS session_id, s.created_at, s.last_used_at, s.expires_at, s.fixed,
       s.ended_at, ${ACCOUNT}
       FROM sessions s JOIN accounts a ON a.id = s.account_id WHERE s.token_hash = $1`,
      tokenHash,
    );
    return row && toSession(row);
  },
  hasSessionEnded: async (unit, id) => {
    const row = await unit.get(
      `SELECT 1 FROM sessions s JOIN accounts a ON a.id = s.account_id
       WHERE s.id = $1 AND (s.ended_at IS NOT NULL OR a.suspended_at IS NOT NULL)`,
      id,
    );
    return row !== null;
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
    const rows = await unit.all<ListedSessionRow>(
      `SELECT id, created_at, last_used_at, user_agent FROM sessions
       WHERE account_id = $1 AND expires_at > $2 AND ended_at IS NULL
       ORDER BY last_used_at DESC, id DESC`,
      accountId,
      now,
    );
    return rows.map(toListedSession);
  },
};

export const sessionWrites: Methods<keyof SessionWrites> = {
  insertSession: async (unit, session) => {
    await unit.change(
      `INSERT INTO sessions
         (id, token_hash, account_id, user_agent, network, created_at, last_used_at, expires_at,
        fixed)
       VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8) ON CONFLICT (token_hash) DO NOTHING`,
      session.id,
      session.token_hash,
      session.account_id,
      session.user_agent,
      session.network ?? null,
      session.at,
      session.expires_at,
      session.fixed ?? false,
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
