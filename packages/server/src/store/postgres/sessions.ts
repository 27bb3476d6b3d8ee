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
import type { Methods } from "./unit.ts";

export const sessionReads: Methods<keyof SessionReads> = {
  session: async (unit, tokenHash) => {
    const row = await unit.get<SessionRow>(SESSION, tokenHash);
    return row && toSession(row);
  },
  hasSessionEnded: async (unit, id) => (await unit.get(ENDED_SESSION, id)) !== null,
  signedInFrom: async (unit, accountId, network) => {
    const row = await unit.get(
      "SELECT 1 FROM sessions WHERE account_id = $1 AND network = $2 LIMIT 1",
      accountId,
      network,
    );
    return row !== null;
  },
  sessionConfirmedAt: async (unit, id) =>
    (await unit.get<{ at: number }>(CONFIRMED_AT, id))?.at ?? null,
  sessions: async (unit, accountId, now) =>
    (await unit.all<ListedSessionRow>(SESSIONS, accountId, now)).map(toListedSession),
};

export const sessionWrites: Methods<keyof SessionWrites> = {
  insertSession: async (unit, session) => {
    await unit.write(INSERT_SESSION, ...sessionValues(session));
  },
  touchSession: async (unit, id, lastUsedAt, expiresAt) => {
    await unit.write(
      "UPDATE sessions SET last_used_at = $2, expires_at = $3 WHERE id = $1",
      id,
      lastUsedAt,
      expiresAt,
    );
  },
  confirmSession: async (unit, id, at) => {
    await unit.change(CONFIRM_SESSION, id, at);
  },
  endSession: async (unit, id, accountId, at) =>
    (await unit.write(END_SESSION, id, accountId, at)).count > 0,
  purgeSessions: async (unit, before, most) =>
    (await unit.write(PURGE_SESSIONS, before, most)).count,
};
