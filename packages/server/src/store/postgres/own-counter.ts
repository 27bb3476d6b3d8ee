import type { Unit } from "./unit.ts";

/** Reads the counter of changes that concern one account alone. */
async function ownCounter(unit: Unit, accountId: number): Promise<number> {
  const row = await unit.get<{ own_seq: number }>(
    "SELECT own_seq FROM accounts WHERE id = $1",
    accountId,
  );
  return row?.own_seq ?? 0;
}

/** Increments an account's own counter, which the unit owns from then on, and returns its new value. */
export async function incrementOwnCounter(unit: Unit, accountId: number): Promise<number> {
  await unit.ownRow("accounts", accountId);
  const own_seq = (await ownCounter(unit, accountId)) + 1;
  await unit.write("UPDATE accounts SET own_seq = $2 WHERE id = $1", accountId, own_seq);
  return own_seq;
}
