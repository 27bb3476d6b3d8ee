import { accountSuspended } from "../changes/change.ts";
import type { AuditDetails, Recorder } from "../security/audit-log.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { Store, WriteTx } from "../store/store.ts";
import { closeAgentSockets, endSessions } from "./sessions.ts";
import { stopApprovedCalls } from "./tool-calls.ts";
import { stopTurnsOf } from "./turns.ts";

/**
 * Suspends an account and ends its sessions and sockets, on every node. Call `stopAgentsOf` after the
 * commit. Does nothing if it is suspended already.
 */
export async function suspend(
  tx: WriteTx,
  record: Recorder,
  account: AccountRecord,
  details: AuditDetails,
): Promise<void> {
  await tx.lockCredentials(account.id);
  if (!(await tx.setSuspended(account.id, Date.now()))) return;
  const sessions_ended = await endSessions(tx, account);
  // Calls that authenticated just before may still open sockets: sockets close by username.
  tx.emit(accountSuspended(account.username));
  closeAgentSockets(tx, await tx.ownedAccounts(account.id));
  await record("account_suspended", { ...details, account: account.username, sessions_ended });
}

/** Lets a suspended account sign in again. Does nothing if it is not suspended. */
export async function restore(
  tx: WriteTx,
  record: Recorder,
  account: AccountRecord,
  details: AuditDetails,
): Promise<void> {
  if (!(await tx.setSuspended(account.id, null))) return;
  await record("account_restored", { ...details, account: account.username });
}

/**
 * Ends the running turns of a suspended account's agents and drops the waiting ones, each
 * conversation in a unit of its own. Calls that were approved and not made yet end too. Turns that are
 * left after a crash do not call their provider.
 */
export async function stopAgentsOf(store: Pick<Store, "read" | "write">, { id }: AccountRecord) {
  for (const conversation of await store.read((tx) => tx.conversationsWithOpenTurns(id))) {
    await store.write((tx) => stopTurnsOf(tx, conversation, ({ owner_id }) => owner_id === id));
  }
  for (const { uuid } of await store.read((tx) => tx.pendingToolCalls(id, Date.now()))) {
    await store.write(async (tx) => {
      const call = await tx.toolCall(uuid);
      if (call) await stopApprovedCalls(tx, call.conversation_id, [call.agent]);
    });
  }
}
