import type { AccountRecord } from "../store/accounts.ts";
import type { Store } from "../store/store.ts";

/** The state from which a client follows events: the counters of its conversations, and their history. */
export interface SyncPoint {
  readonly conversations: { uuid: string; seq: number }[];
  readonly history_id: string;
}

/** Reads the sync point of an account from one snapshot. */
export async function readSyncPoint(
  { store }: { store: Store },
  { id }: AccountRecord,
): Promise<SyncPoint> {
  const [conversations, history_id] = await store.read((tx) =>
    Promise.all([tx.counters(id), tx.historyId()]),
  );
  return { conversations, history_id };
}
