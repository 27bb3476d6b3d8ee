import { type Awaitable, after } from "./awaitable.ts";
import type { Sql } from "./sql.ts";

/** Increments the counter of a conversation, which the unit owns, and returns its new value. */
export function incrementCounter(db: Sql, conversationId: number): Awaitable<number> {
  db.changes(conversationId);
  const counted = db.changed<{ seq: number }>`
    UPDATE counters SET seq = seq + 1 WHERE conversation_id = ${conversationId} RETURNING seq`;
  return after(counted, ([row]) => {
    if (!row) throw new Error(`conversation ${conversationId} has no counters`);
    return row.seq;
  });
}

/** Reads the counter of changes that concern one account alone. */
export const ownCounter = (db: Sql, accountId: number) =>
  db.firstNumber`SELECT own_seq FROM accounts WHERE id = ${accountId}`;

/** Increments an account's own counter, which the unit owns from then on, and returns its new value. */
export async function incrementOwnCounter(db: Sql, accountId: number): Promise<number> {
  await db.ownRow("accounts", accountId);
  const [row] = await db.changed<{ own_seq: number }>`
    UPDATE accounts SET own_seq = own_seq + 1 WHERE id = ${accountId} RETURNING own_seq`;
  if (!row) throw new Error(`account ${accountId} is missing`);
  return row.own_seq;
}
