import {
  blockOf,
  CONVERSATION,
  type ConversationRecord,
  type HotConversationReads,
  type HotConversationWrites,
  type ReadMove,
  readTotals,
} from "../conversations.ts";
import { type Batch, list } from "../postgres/transaction.ts";
import { type Methods, prepared, type Unit } from "../postgres/unit.ts";
import { raw, sql } from "../sql.ts";

export const hotConversationReads: Methods<keyof HotConversationReads> = {
  conversation: async (unit, uuid, viewerId) => {
    const id = knownIds.get(uuid) ?? (await findId(unit, uuid));
    if (id === null) return null;
    // Owned first: what is read before may be outdated by the time the unit owns the conversation.
    await unit.own(id);
    return unit.together(RECORD, { id, viewerId });
  },
};

export const hotConversationWrites: Methods<keyof HotConversationWrites> = {
  markRead: async (unit, conversationId, accountId, seq) => {
    unit.changes(conversationId);
    const [before] = await unit.changed<ReadMove>`
      ${readTotals(conversationId, accountId, seq)}
      UPDATE members SET last_read_seq = ${seq}, read_humans = reached.humans + gone.humans,
        read_agents = reached.agents + gone.agents,
        shown_read_seq = CASE WHEN members.shown_read_seq > ${seq} THEN members.shown_read_seq END,
        unread_mentions = (SELECT count(*) FROM mentions WHERE account_id = ${accountId}
          AND conversation_id = ${conversationId} AND seq > ${seq})
      FROM reached CROSS JOIN gone CROSS JOIN (SELECT last_read_seq, shown_read_seq FROM members
        WHERE conversation_id = ${conversationId} AND account_id = ${accountId}) before
      WHERE members.conversation_id = ${conversationId} AND members.account_id = ${accountId}
        AND members.last_read_seq < ${seq}
      RETURNING before.last_read_seq, before.shown_read_seq`;
    return before ?? null;
  },
};

const KNOWN_IDS = 50_000;

/** Caches the row ids of conversations by uuid, which never change. Evicts the oldest entries. */
const knownIds = new Map<string, number>();

async function findId(unit: Unit, uuid: string): Promise<number | null> {
  const row = await unit.get<{ id: number }>`SELECT id FROM conversations WHERE uuid = ${uuid}`;
  if (!row) return null;
  knownIds.set(uuid, row.id);
  if (knownIds.size > KNOWN_IDS) knownIds.delete(knownIds.keys().next().value as string);
  return row.id;
}

/** Reads conversations for many units at once. */
const RECORD: Batch<{ id: number; viewerId: number }, ConversationRecord | null> = {
  statement: prepared(sql`
    SELECT ${CONVERSATION}, m.account_id IS NOT NULL AS joined, ${blockOf(raw("j.viewer_id"))}
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS j(id, viewer_id, place)
    LEFT JOIN (conversations c JOIN counters k ON k.conversation_id = c.id)
      ON c.id = j.id AND c.erased_at IS NULL
    LEFT JOIN members m ON m.conversation_id = j.id AND m.account_id = j.viewer_id
    ORDER BY j.place`),
  writes: false,
  values: (calls) => [list(calls.map(({ id }) => id)), list(calls.map((call) => call.viewerId))],
  results: (rows: readonly (ConversationRecord | { id: null })[]) =>
    rows.map((row) => (row.id === null ? null : row)),
};
