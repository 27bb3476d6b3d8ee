import { ADD_MENTIONS } from "../mentions.ts";
import { countsOf } from "../message-records.ts";
import { toNewMessage, toStoredAction } from "../message-views.ts";
import type { HotMessageWrites } from "../messages.ts";
import type { Connection } from "../sqlite/connection.ts";
import { compiled } from "../sqlite/dialect.ts";

export function hotMessageWrites(db: Connection): HotMessageWrites {
  const counters = db.query<{ seq: number; humans: number; agents: number }>(
    "SELECT seq, humans, agents FROM counters WHERE conversation_id = ?",
  );
  const count = db.change(
    `UPDATE counters SET seq = ?2, humans = ?3, agents = ?4, updated_at = ?5
     WHERE conversation_id = ?1`,
  );
  const insert = db.change(
    `INSERT INTO messages (uuid, conversation_id, seq, version, sender_id, by_agent, human_n, agent_n,
       content, client_msg_id, reply_to_id, mentions, turn, created_at, finalized_at, action,
       files, metadata)
     VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
     ON CONFLICT (conversation_id, sender_id, client_msg_id) WHERE client_msg_id IS NOT NULL
     DO NOTHING`,
  );
  const readAll = db.change(
    `UPDATE members SET last_read_seq = ?3, read_humans = ?4, read_agents = ?5, unread_mentions = 0,
       wrote = 1
     WHERE conversation_id = ?1 AND account_id = ?2`,
  );
  const mention = db.change<{ account_id: number }>(compiled(ADD_MENTIONS));
  const countMention = db.change(
    `UPDATE members SET unread_mentions = unread_mentions + 1
     WHERE conversation_id = ?1 AND account_id = ?2 AND last_read_seq < ?3`,
  );

  return {
    insertMessage: (message) => {
      const { conversation, sender, content, client_msg_id, reply_to_id, mentions, at } = message;
      db.changes(conversation.id);
      const before = counters.get(conversation.id);
      if (!before) throw new Error(`conversation ${conversation.id} has no counters`);
      const counts = countsOf(sender.kind);
      const seq = before.seq + 1;
      const humans = before.humans + counts.humans;
      const agents = before.agents + counts.agents;
      const uuid = Bun.randomUUIDv7();
      const { changes } = insert.run(
        uuid,
        conversation.id,
        seq,
        sender.id,
        counts.agents,
        humans,
        agents,
        content,
        client_msg_id,
        reply_to_id,
        mentions.length === 0 ? null : JSON.stringify(mentions),
        message.turn ? JSON.stringify(message.turn) : null,
        at,
        message.turn ? null : at,
        message.action ? JSON.stringify(toStoredAction(message)) : null,
        message.files ? JSON.stringify(message.files) : null,
        message.metadata ? JSON.stringify(message.metadata) : null,
      );
      if (changes === 0) return null;
      count.run(conversation.id, seq, humans, agents, at);
      readAll.run(conversation.id, sender.id, seq, humans, agents);
      if (mentions.length > 0) {
        const named = mention.all(JSON.stringify(mentions), conversation.id, seq, sender.id);
        for (const { account_id } of named) countMention.run(conversation.id, account_id, seq);
      }
      return toNewMessage(message, uuid, seq);
    },
  };
}
