import {
  type ImportedMessageWrites,
  importedAt,
  importResults,
  type KnownMessage,
  planImport,
} from "../imported-messages.ts";
import { newMentions, toStoredMentions } from "../mentions.ts";
import { countsOf } from "../message-records.ts";
import { toNewMessage, toStoredAction } from "../message-views.ts";
import type { HotMessageWrites } from "../messages.ts";
import { json, sql } from "../sql.ts";
import type { Counters } from "../sqlite/known-conversations.ts";
import type { Methods, Port } from "../sqlite/sql.ts";

export const hotMessageWrites: Methods<keyof HotMessageWrites> = {
  insertMessage: (db, message) => {
    const { conversation, sender, content, client_msg_id, reply_to_id, mentions, at } = message;
    db.changes(conversation.id);
    const counters = countersOf(db, conversation);
    const counts = countsOf(sender.kind);
    const seq = counters.seq + 1;
    const humans = counters.humans + counts.humans;
    const agents = counters.agents + counts.agents;
    const uuid = Bun.randomUUIDv7();
    const inserted = db.change`
      INSERT INTO messages (uuid, conversation_id, seq, version, sender_id, by_agent, human_n,
        agent_n, content, client_msg_id, reply_to_id, mentions, turn, created_at, finalized_at,
        action, files, metadata)
      VALUES (${uuid}, ${conversation.id}, ${seq}, ${seq}, ${sender.id}, ${counts.agents},
        ${humans}, ${agents}, ${content}, ${client_msg_id}, ${reply_to_id},
        ${toStoredMentions(mentions)}, ${json(message.turn)}, ${at}, ${message.turn ? null : at},
        ${json(toStoredAction(message))}, ${json(message.files)}, ${json(message.metadata)})
      ON CONFLICT (conversation_id, sender_id, client_msg_id) WHERE client_msg_id IS NOT NULL
      DO NOTHING`;
    if (inserted === 0) return null;
    const counted = sql`
      UPDATE counters SET seq = ${seq}, humans = ${humans}, agents = ${agents}, updated_at = ${at}
      WHERE conversation_id = ${conversation.id}`;
    db.later(`${conversation.id}`, counted);
    Object.assign(counters, { seq, humans, agents });
    const read = sql`
      UPDATE members SET last_read_seq = ${seq}, read_humans = ${humans}, read_agents = ${agents},
        shown_read_seq = NULL, unread_mentions = 0, wrote = 1
      WHERE conversation_id = ${conversation.id} AND account_id = ${sender.id}`;
    db.later(`${conversation.id} ${sender.id}`, read);
    if (mentions.length > 0) {
      const place = { conversation_id: conversation.id, seq, sender_id: sender.id };
      const named = db.changed<{ account_id: number }>`${newMentions(mentions, place)}`;
      for (const { account_id } of named) {
        db.change`
          UPDATE members SET unread_mentions = unread_mentions + 1
          WHERE conversation_id = ${conversation.id} AND account_id = ${account_id}
            AND last_read_seq < ${seq}`;
      }
    }
    return toNewMessage(message, uuid, seq);
  },
};

function countersOf(db: Port, { id, uuid }: { readonly id: number; readonly uuid: string }) {
  const counters =
    db.known?.counters(uuid) ??
    db.get<Counters>`SELECT seq, humans, agents FROM counters WHERE conversation_id = ${id}`;
  if (!counters) throw new Error(`conversation ${id} has no counters`);
  return counters;
}

export const importedMessageWrites: Methods<keyof ImportedMessageWrites> = {
  importMessages: (db, conversation, messages) => {
    db.changes(conversation.id);
    const before = countersOf(db, conversation);
    const keys = messages.map(({ sender, client_msg_id }) => [sender.id, client_msg_id]);
    const stored = db.all<KnownMessage>`
      SELECT m.uuid, m.sender_id, m.client_msg_id FROM json_each(${json(keys)}) j
      CROSS JOIN messages m ON m.conversation_id = ${conversation.id}
        AND m.sender_id = j.value ->> 0 AND m.client_msg_id = j.value ->> 1`;
    const { uuids, rows } = planImport(messages, stored, before.seq);
    for (const { uuid, seq, message } of rows) {
      const { sender, content, client_msg_id, mentions, at } = message;
      // The totals stay as they are, so that the messages are unread for nobody.
      db.change`
        INSERT INTO messages (uuid, conversation_id, seq, version, sender_id, by_agent, human_n,
          agent_n, content, client_msg_id, mentions, created_at, finalized_at, imported, metadata)
        VALUES (${uuid}, ${conversation.id}, ${seq}, ${seq}, ${sender.id},
          ${countsOf(sender.kind).agents}, ${before.humans}, ${before.agents}, ${content},
          ${client_msg_id}, ${toStoredMentions(mentions)}, ${at}, ${at}, 1,
          ${json(message.metadata)})`;
    }
    const last = rows.at(-1);
    if (last) {
      db.change`
        UPDATE counters SET seq = ${last.seq}, updated_at = ${importedAt(rows)}
        WHERE conversation_id = ${conversation.id}`;
    }
    return importResults(conversation, uuids, rows);
  },
};
