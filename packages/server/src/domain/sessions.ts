import type { AccountRecord } from "../store/accounts.ts";
import type { WriteTx } from "../store/store.ts";

/** False when it is not there, not this account's, or has ended before. */
export async function endSession(
  tx: WriteTx,
  id: string,
  account: AccountRecord,
): Promise<boolean> {
  const ended = await tx.endSession(id, account.id, Date.now());
  if (ended) tx.emit({ kind: "session_ended", session_id: id });
  return ended;
}

/** Whoever knew the old one is out, except for the session that is kept. Returns how many sessions ended. */
export async function replacePassword(
  tx: WriteTx,
  account: AccountRecord,
  hash: string,
  keptSession?: string,
): Promise<number> {
  await tx.setPassword(account.id, hash);
  const sessions = await tx.sessions(account.id, Date.now());
  const others = sessions.filter(({ id }) => id !== keptSession);
  for (const { id } of others) await endSession(tx, id, account);
  return others.length;
}
