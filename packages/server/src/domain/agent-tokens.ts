import { accountSuspended } from "../changes/change.ts";
import { isExternal } from "../rules/agents.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { WriteTx } from "../store/store.ts";

/** Revokes tokens of external agents and closes their sockets, on every node. */
export async function revokeTokens(tx: WriteTx, ids: readonly string[]): Promise<void> {
  await tx.deleteAgentTokens(ids);
  for (const session_id of ids) tx.emit({ kind: "session_ended", session_id });
}

/** Closes the sockets of a person's external agents, on every node. */
export function closeAgentSockets(tx: WriteTx, owned: readonly AccountRecord[]): void {
  for (const { username } of owned.filter(isExternal)) {
    tx.emit(accountSuspended(username));
  }
}
