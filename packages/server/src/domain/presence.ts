import type { PresenceSetting } from "@parley/protocol";
import type { AccountRecord } from "../store/accounts.ts";
import type { Seen } from "../store/presence.ts";
import type { Store, WriteTx } from "../store/store.ts";

/** Shows or hides a person's presence. What is told ends, or begins, at once on all nodes. */
export async function setPresence(
  tx: WriteTx,
  { id, username }: AccountRecord,
  presence: PresenceSetting,
): Promise<void> {
  if ((await tx.presenceSetting(id)) === presence) return;
  await tx.setPresence(id, presence);
  tx.emit({ kind: "presence_changed", username });
}

/** What those who watch presence on a node need from the store. */
export const storedPresence = (store: Pick<Store, "read" | "note">) => ({
  /** Those of these people whose presence the person is told, and who are told of the person's. */
  among: (username: string, others: readonly string[]) =>
    store.read((tx) => tx.presenceAmong(username, others)),
  /** Lost in a power cut, like other times of what was used last. */
  note: (seen: readonly Seen[]) => store.note((tx) => tx.noteLastSeen(seen)),
});
