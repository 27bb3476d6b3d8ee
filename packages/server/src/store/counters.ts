import { type Awaitable, after } from "./awaitable.ts";
import { firstNumber, type Sql } from "./sql.ts";

/** Increments the counter of a conversation, which the unit owns, and returns its new value. */
export function incrementCounter(db: Sql, conversationId: number): Awaitable<number> {
  db.changes(conversationId);
  return after(db.changed<{ seq: number }>(INCREMENT, [conversationId]), ([row]) => {
    if (!row) throw new Error(`conversation ${conversationId} has no counters`);
    return row.seq;
  });
}

const INCREMENT = "UPDATE counters SET seq = seq + 1 WHERE conversation_id = $1 RETURNING seq";

/** Reads the counter of changes that concern one account alone. */
export const ownCounter = (db: Sql, accountId: number) =>
  firstNumber(db, "SELECT own_seq FROM accounts WHERE id = $1", [accountId]);

/** Increments an account's own counter, which the unit owns from then on, and returns its new value. */
export async function incrementOwnCounter(db: Sql, accountId: number): Promise<number> {
  await db.ownRow("accounts", accountId);
  const [row] = await db.changed<{ own_seq: number }>(
    "UPDATE accounts SET own_seq = own_seq + 1 WHERE id = $1 RETURNING own_seq",
    [accountId],
  );
  if (!row) throw new Error(`account ${accountId} is missing`);
  return row.own_seq;
}
