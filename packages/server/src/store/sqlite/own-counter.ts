import type { Connection } from "./connection.ts";

/** Reads the counter of changes that concern one account alone. */
export function ownCounter(db: Connection) {
  const counter = db.query<{ own_seq: number }>("SELECT own_seq FROM accounts WHERE id = ?");
  return (accountId: number): number => counter.get(accountId)?.own_seq ?? 0;
}

/** Increments an account's own counter and returns its new value. */
export function incrementOwnCounter(db: Connection) {
  const increment = db.change<{ own_seq: number }>(
    "UPDATE accounts SET own_seq = own_seq + 1 WHERE id = ? RETURNING own_seq",
  );
  return (accountId: number): number => {
    const row = increment.get(accountId);
    if (!row) throw new Error(`account ${accountId} is missing`);
    return row.own_seq;
  };
}
