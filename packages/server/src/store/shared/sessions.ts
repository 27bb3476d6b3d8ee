import { iso } from "../../rules/time.ts";
import type { AccountRecord } from "../accounts.ts";
import type { SessionRecord } from "../sessions.ts";
import { accountOf } from "./accounts.ts";

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
