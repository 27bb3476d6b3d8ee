import type { AccountRecord } from "../store/accounts.ts";
import type { WriteTx } from "../store/store.ts";

/** Ends a session of the account. Returns false if there is none with this id, or it has ended already. */
export async function endSession(
  tx: WriteTx,
  id: string,
  account: AccountRecord,
): Promise<boolean> {
  const ended = await tx.endSession(id, account.id, Date.now());
  if (ended) tx.emit({ kind: "session_ended", session_id: id });
  return ended;
}

/** Sets a password and ends all sessions of the account except `keptSession`. Returns how many it ended. */
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
