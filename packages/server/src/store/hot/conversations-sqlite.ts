import {
  blockOf,
  CONVERSATION,
  type ConversationRecord,
  type HotConversationReads,
  type HotConversationWrites,
  type ReadMove,
} from "../conversations.ts";
import type { Counters } from "../sqlite/known-conversations.ts";
import type { Methods, Port } from "../sqlite/sql.ts";

export const hotConversationReads: Methods<keyof HotConversationReads> = {
  conversation: (db, uuid, viewerId) => {
    const record = db.known?.record(uuid, viewerId) ?? readRecord(db, uuid, viewerId);
    if (record) db.own(record.id);
    return record;
  },
};

export const hotConversationWrites: Methods<keyof HotConversationWrites> = {
  markRead: (db, conversationId, accountId, seq) => {
    db.changes(conversationId);
    const before = db.get<ReadMove>`
      SELECT last_read_seq, shown_read_seq FROM members
      WHERE conversation_id = ${conversationId} AND account_id = ${accountId}`;
    if (!before || before.last_read_seq >= seq) return null;
    const read =
      db.get<Latest>`
        SELECT seq, human_n, agent_n FROM messages
        WHERE conversation_id = ${conversationId} AND seq <= ${seq} AND deleted_at IS NULL
        ORDER BY seq DESC LIMIT 1` ?? NO_MESSAGE;
    const gone =
      db.get<Totals>`
        SELECT coalesce(sum(1 - by_agent), 0) AS humans, coalesce(sum(by_agent), 0) AS agents FROM (
          SELECT by_agent FROM messages
          WHERE conversation_id = ${conversationId} AND seq > ${read.seq}
            AND deleted_at IS NOT NULL AND NOT imported
          UNION ALL
          SELECT m.by_agent FROM hidden h CROSS JOIN messages m
            ON m.conversation_id = h.conversation_id AND m.seq = h.seq AND m.deleted_at IS NULL
          WHERE h.account_id = ${accountId} AND h.conversation_id = ${conversationId}
            AND h.seq > ${read.seq} AND NOT m.imported)` ?? NOTHING;
    db.change`
      UPDATE members SET last_read_seq = ${seq}, read_humans = ${read.human_n + gone.humans},
        read_agents = ${read.agent_n + gone.agents},
        shown_read_seq = CASE WHEN shown_read_seq > ${seq} THEN shown_read_seq END,
        unread_mentions = (SELECT count(*) FROM mentions WHERE account_id = ${accountId}
          AND conversation_id = ${conversationId} AND seq > ${seq})
      WHERE conversation_id = ${conversationId} AND account_id = ${accountId}`;
    return before;
  },
};

type Row = Omit<ConversationRecord, "joined"> & Counters & { joined: number };

function readRecord(db: Port, uuid: string, viewerId: number): ConversationRecord | null {
  const row = db.get<Row>`
    SELECT ${CONVERSATION}, k.humans, k.agents, EXISTS (SELECT 1 FROM members m
      WHERE m.conversation_id = c.id AND m.account_id = ${viewerId}) AS joined, ${blockOf(viewerId)}
    FROM conversations c JOIN counters k ON k.conversation_id = c.id
    WHERE c.uuid = ${uuid} AND c.erased_at IS NULL`;
  if (!row) return null;
  const { humans, agents, ...fields } = row;
  const record = { ...fields, joined: row.joined === 1 };
  db.known?.add(record, viewerId, { seq: row.seq, humans, agents });
  return record;
}

type Latest = Record<"seq" | "human_n" | "agent_n", number>;
const NO_MESSAGE: Latest = { seq: 0, human_n: 0, agent_n: 0 };

type Totals = Pick<Counters, "humans" | "agents">;
const NOTHING: Totals = { humans: 0, agents: 0 };
