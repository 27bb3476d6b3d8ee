import { firstValue, type Sql } from "./sql.ts";

/** Reads the counter of changes that concern one account alone. */
export async function ownCounter(db: Sql, accountId: number): Promise<number> {
  return (
    (await firstValue<number>(db, "SELECT own_seq FROM accounts WHERE id = $1", [accountId])) ?? 0
  );
}

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
