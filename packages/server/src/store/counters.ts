import { type Awaitable, after } from "./awaitable.ts";
import type { Sql } from "./sql.ts";

/** Increments the counter of a conversation, which the unit owns, and returns its new value. */
export function incrementCounter(db: Sql, conversationId: number): Awaitable<number> {
  db.changes(conversationId);
  return after(db.changed<{ seq: number }>(INCREMENT, [conversationId]), ([row]) => {
    if (!row) throw new Error(`conversation ${conversationId} has no counters`);
    return row.seq;
  });
}

const INCREMENT = "UPDATE counters SET seq = seq + 1 WHERE conversation_id = $1 RETURNING seq";
