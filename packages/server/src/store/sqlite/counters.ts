import type { Connection } from "./connection.ts";

/** Increments a conversation's counter and returns its new value. */
export function incrementCounter(db: Connection) {
  const increment = db.change<{ seq: number }>(
    "UPDATE counters SET seq = seq + 1 WHERE conversation_id = ? RETURNING seq",
  );
  return (conversationId: number): number => {
    const row = increment.get(conversationId);
    if (!row) throw new Error(`conversation ${conversationId} has no counters`);
    return row.seq;
  };
}
