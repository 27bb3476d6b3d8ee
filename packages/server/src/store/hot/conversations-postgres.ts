import {
  blockOf,
  CONVERSATION,
  type ConversationRecord,
  type HotConversationReads,
} from "../conversations.ts";
import { type Batch, list, type Methods, type Unit } from "../postgres/unit.ts";

export const hotConversationReads: Methods<keyof HotConversationReads> = {
  conversation: async (unit, uuid, viewerId) => {
    const id = knownIds.get(uuid) ?? (await findId(unit, uuid));
    if (id === null) return null;
    // Owned first: what is read before may be outdated by the time the unit owns the conversation.
    await unit.own(id);
    return unit.together(RECORD, { id, viewerId });
  },
};

const KNOWN_IDS = 50_000;

/** Caches the row ids of conversations by uuid, which never change. Evicts the oldest entries. */
const knownIds = new Map<string, number>();

async function findId(unit: Unit, uuid: string): Promise<number | null> {
  const row = await unit.get<{ id: number }>("SELECT id FROM conversations WHERE uuid = $1", uuid);
  if (!row) return null;
  knownIds.set(uuid, row.id);
  if (knownIds.size > KNOWN_IDS) knownIds.delete(knownIds.keys().next().value as string);
  return row.id;
}

/** Reads conversations for many units at once. */
const RECORD: Batch<{ id: number; viewerId: number }, ConversationRecord | null> = {
  sql: `SELECT ${CONVERSATION}, m.account_id IS NOT NULL AS joined, ${blockOf("j.viewer_id")}
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS j(id, viewer_id, place)
    LEFT JOIN (conversations c JOIN counters k ON k.conversation_id = c.id) ON c.id = j.id
    LEFT JOIN members m ON m.conversation_id = j.id AND m.account_id = j.viewer_id
    ORDER BY j.place`,
  writes: false,
  values: (calls) => [list(calls.map(({ id }) => id)), list(calls.map((call) => call.viewerId))],
  results: (rows: readonly (ConversationRecord | { id: null })[]) =>
    rows.map((row) => (row.id === null ? null : row)),
};
