import type { Sql } from "./sql.ts";

/** Increments the counter of a conversation, which the unit owns, and returns its new value. */
export async function incrementCounter(db: Sql, conversationId: number): Promise<number> {
  db.changes(conversationId);
  const [row] = await db.changed<{ seq: number }>(
    "UPDATE counters SET seq = seq + 1 WHERE conversation_id = $1 RETURNING seq",
    conversationId,
  );
  if (!row) throw new Error(`conversation ${conversationId} has no counters`);
  return row.seq;
}
