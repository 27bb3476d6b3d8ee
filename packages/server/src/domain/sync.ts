import type { InputOf } from "@parley/protocol";
import type { AccountRecord } from "../store/accounts.ts";
import type { ReadTx, Store } from "../store/store.ts";

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

/** Which conversations changed since the client last looked, and the changes that no conversation has. */
export async function readChangesSince(
  tx: ReadTx,
  viewerId: number,
  { known, accounts_since, own_since }: InputOf<"getUpdates">,
) {
  const { accounts, ...names } = await tx.renamedSince(viewerId, accounts_since);
  const { hidden, ...own } = await tx.hiddenSince(viewerId, own_since);
  return {
    ...compareCounters(known ? await tx.counters(viewerId) : [], known ?? {}),
    accounts,
    accounts_seq: names.seq,
    hidden,
    own_seq: own.seq,
    has_more: names.has_more || own.has_more,
  };
}

function compareCounters(
  counters: SyncPoint["conversations"],
  known: Readonly<Record<string, number>>,
) {
  const current = counters.map(({ uuid, seq }) => ({ conversation_id: uuid, seq }));
  const ids = new Set(current.map(({ conversation_id }) => conversation_id));
  return {
    ahead: current.filter(({ conversation_id, seq }) => seq > (known[conversation_id] ?? seq)),
    behind: current.filter(({ conversation_id, seq }) => seq < (known[conversation_id] ?? seq)),
    new: current.filter(({ conversation_id }) => known[conversation_id] === undefined),
    gone: Object.keys(known).filter((id) => !ids.has(id)),
  };
}
