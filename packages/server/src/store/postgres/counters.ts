import type { Unit } from "./unit.ts";

/** Increments a conversation's counter and returns its new value. The unit owns the conversation then. */
export async function incrementCounter(unit: Unit, conversationId: number): Promise<number> {
  await unit.own(conversationId);
  const [row] = await unit.write<{ seq: number }>(
    `UPDATE counters SET seq = seq + 1 WHERE conversation_id = $1 RETURNING seq`,
    conversationId,
  );
  if (!row) throw new Error(`conversation ${conversationId} has no counters`);
  return row.seq;
}
