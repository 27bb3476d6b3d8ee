import {
  blockOf,
  CONVERSATION,
  type ConversationRecord,
  type HotConversationReads,
  type HotConversationWrites,
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
    return unit.hasChanged`
      WITH reached AS (
        SELECT coalesce(max(seq), 0) AS seq, coalesce(max(human_n), 0) AS humans,
               coalesce(max(agent_n), 0) AS agents
        FROM (SELECT seq, human_n, agent_n FROM messages
              WHERE conversation_id = ${conversationId} AND seq <= ${seq} AND deleted_at IS NULL
              ORDER BY seq DESC LIMIT 1) latest
      ), gone AS (
        SELECT count(*) FILTER (WHERE NOT by_agent) AS humans,
               count(*) FILTER (WHERE by_agent) AS agents
        FROM (SELECT m.by_agent FROM messages m
              WHERE m.conversation_id = ${conversationId} AND m.seq > (SELECT seq FROM reached)
                AND m.deleted_at IS NOT NULL AND NOT m.imported
              UNION ALL
              SELECT m.by_agent FROM hidden h CROSS JOIN messages m
              WHERE h.account_id = ${accountId} AND h.conversation_id = ${conversationId}
                AND h.seq > (SELECT seq FROM reached) AND m.conversation_id = h.conversation_id
                AND m.seq = h.seq AND m.deleted_at IS NULL AND NOT m.imported) beyond
      )
      UPDATE members SET last_read_seq = ${seq}, read_humans = reached.humans + gone.humans,
        read_agents = reached.agents + gone.agents,
        unread_mentions = (SELECT count(*) FROM mentions WHERE account_id = ${accountId}
          AND conversation_id = ${conversationId} AND seq > ${seq})
      FROM reached CROSS JOIN gone
      WHERE members.conversation_id = ${conversationId} AND members.account_id = ${accountId}
        AND members.last_read_seq < ${seq}`;
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
    LEFT JOIN (conversations c JOIN counters k ON k.conversation_id = c.id) ON c.id = j.id
    LEFT JOIN members m ON m.conversation_id = j.id AND m.account_id = j.viewer_id
    ORDER BY j.place`),
  writes: false,
  values: (calls) => [list(calls.map(({ id }) => id)), list(calls.map((call) => call.viewerId))],
  results: (rows: readonly (ConversationRecord | { id: null })[]) =>
    rows.map((row) => (row.id === null ? null : row)),
};
