import {
  blockOf,
  CONVERSATION,
  type ConversationRecord,
  type HotConversationReads,
  type HotConversationWrites,
} from "../conversations.ts";
import type { Connection } from "../sqlite/connection.ts";

export function hotConversationReads(db: Connection): HotConversationReads {
  const record = db.query<Omit<ConversationRecord, "joined"> & { joined: number }>(
    `SELECT ${CONVERSATION},
       EXISTS (SELECT 1 FROM members m WHERE m.conversation_id = c.id AND m.account_id = ?2)
         AS joined,
       ${blockOf("?2")}
     FROM conversations c JOIN counters k ON k.conversation_id = c.id WHERE c.uuid = ?1`,
  );
  return {
    conversation: (uuid, viewerId) => {
      const row = record.get(uuid, viewerId);
      if (row) db.own(row.id);
      return row && { ...row, joined: row.joined === 1 };
    },
  };
}

export function hotConversationWrites(db: Connection): HotConversationWrites {
  const position = db.query<{ last_read_seq: number }>(
    "SELECT last_read_seq FROM members WHERE conversation_id = ? AND account_id = ?",
  );
  const latest = db.query<{ seq: number; human_n: number; agent_n: number }>(
    `SELECT seq, human_n, agent_n FROM messages
     WHERE conversation_id = ? AND seq <= ? AND deleted_at IS NULL ORDER BY seq DESC LIMIT 1`,
  );
  const goneAfter = db.query<{ humans: number; agents: number }>(
    `SELECT coalesce(sum(1 - by_agent), 0) AS humans, coalesce(sum(by_agent), 0) AS agents FROM (
       SELECT by_agent FROM messages
       WHERE conversation_id = ?1 AND seq > ?2 AND deleted_at IS NOT NULL AND NOT imported
       UNION ALL
       SELECT m.by_agent FROM hidden h CROSS JOIN messages m
         ON m.conversation_id = h.conversation_id AND m.seq = h.seq AND m.deleted_at IS NULL
       WHERE h.account_id = ?3 AND h.conversation_id = ?1 AND h.seq > ?2 AND NOT m.imported)`,
  );
  const update = db.change(
    `UPDATE members SET last_read_seq = ?3, read_humans = ?4, read_agents = ?5,
       unread_mentions = (SELECT count(*) FROM mentions
         WHERE account_id = ?2 AND conversation_id = ?1 AND seq > ?3)
     WHERE conversation_id = ?1 AND account_id = ?2`,
  );
  return {
    markRead: (conversationId, accountId, seq) => {
      db.changes(conversationId);
      const before = position.get(conversationId, accountId);
      if (!before || before.last_read_seq >= seq) return false;
      const read = latest.get(conversationId, seq) ?? { seq: 0, human_n: 0, agent_n: 0 };
      const gone = goneAfter.get(conversationId, read.seq, accountId) ?? { humans: 0, agents: 0 };
      const humans = read.human_n + gone.humans;
      update.run(conversationId, accountId, seq, humans, read.agent_n + gone.agents);
      return true;
    },
  };
}
