import type { Operations } from "../types.ts";
import type { Positions } from "./positions.ts";

/** A counter takes some 45 bytes, so a call stays far below the default of `frame_bytes`, 256 KiB. */
const COUNTERS_PER_CALL = 2000;

interface ServerCounters {
  /** The counter of every conversation of the account. */
  seqs: Map<string, number>;
  historyId: string | null;
  /** Whether some counters of the server are below the known ones: it has lost changes. */
  isServerBehind: boolean;
}

/** Fetches the counters of all conversations by comparing them with the known positions. */
export async function fetchCounters(
  api: Pick<Operations, "getUpdates">,
  { chats, historyId }: Positions,
): Promise<ServerCounters> {
  const found: ServerCounters = { seqs: new Map(), historyId, isServerBehind: false };
  const all = Object.entries(chats);
  for (let from = 0; from === 0 || from < all.length; from += COUNTERS_PER_CALL) {
    const batch = all.slice(from, from + COUNTERS_PER_CALL).map(([id, { seq }]) => [id, seq]);
    const known: Record<string, number> = Object.fromEntries(batch);
    const compared = await api.getUpdates({ known });
    if (!("gone" in compared)) continue;
    const { gone, ahead, behind = [], new: unknown, history_id = null } = compared;
    found.historyId = history_id;
    found.isServerBehind ||= behind.length > 0;
    for (const id of gone) delete known[id];
    for (const [id, seq] of Object.entries(known)) found.seqs.set(id, seq);
    // Conversations of other batches are listed as new too.
    const added = unknown.filter(({ conversation_id }) => chats[conversation_id] === undefined);
    for (const { conversation_id, seq } of [...ahead, ...behind, ...added]) {
      found.seqs.set(conversation_id, seq);
    }
  }
  return found;
}
