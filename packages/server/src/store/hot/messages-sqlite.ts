import {
  type ImportedMessageWrites,
  importedAt,
  importResults,
  latestTime,
  planImport,
} from "../imported-messages.ts";
import { ADD_MENTIONS } from "../mentions.ts";
import { countsOf } from "../message-records.ts";
import { toNewMessage, toStoredAction } from "../message-views.ts";
import type { HotMessageWrites } from "../messages.ts";
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
    const inserted = db.change(INSERT, [
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
      db.json(message.turn),
      at,
      message.turn ? null : at,
      db.json(toStoredAction(message)),
      db.json(message.files),
      db.json(message.metadata),
    ]);
    if (inserted === 0) return null;
    db.later(`${conversation.id}`, COUNT, [conversation.id, seq, humans, agents, at]);
    Object.assign(counters, { seq, humans, agents });
    const reader = `${conversation.id} ${sender.id}`;
    db.later(reader, READ_ALL, [conversation.id, sender.id, seq, humans, agents]);
    if (mentions.length > 0) {
      const place = [conversation.id, seq] as const;
      const named = db.changed<Named>(ADD_MENTIONS, [db.list(mentions), ...place, sender.id]);
      for (const { account_id } of named) db.change(COUNT_MENTION, [...place, account_id]);
    }
    return toNewMessage(message, uuid, seq);
  },
};

function countersOf(
  db: Port,
  { id, uuid }: { readonly id: number; readonly uuid: string },
): Counters {
  const counters = db.known?.counters(uuid) ?? db.get<Counters>(COUNTERS, [id]);
  if (!counters) throw new Error(`conversation ${id} has no counters`);
  return counters;
}

interface Named {
  account_id: number;
}

const COUNTERS = "SELECT seq, humans, agents FROM counters WHERE conversation_id = $1";

const INSERT = `INSERT INTO messages (uuid, conversation_id, seq, version, sender_id, by_agent,
    human_n, agent_n, content, client_msg_id, reply_to_id, mentions, turn, created_at,
    finalized_at, action, files, metadata)
  VALUES ($1, $2, $3, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
  ON CONFLICT (conversation_id, sender_id, client_msg_id) WHERE client_msg_id IS NOT NULL
  DO NOTHING`;

const COUNT = `UPDATE counters SET seq = $2, humans = $3, agents = $4, updated_at = $5
  WHERE conversation_id = $1`;

const READ_ALL = `UPDATE members SET last_read_seq = $3, read_humans = $4, read_agents = $5,
    unread_mentions = 0, wrote = 1
  WHERE conversation_id = $1 AND account_id = $2`;

const COUNT_MENTION = `UPDATE members SET unread_mentions = unread_mentions + 1
  WHERE conversation_id = $1 AND account_id = $3 AND last_read_seq < $2`;

export const importedMessageWrites: Methods<keyof ImportedMessageWrites> = {
  importMessages: (db, conversation, messages) => {
    db.changes(conversation.id);
    const before = countersOf(db, conversation);
    const keys = messages.map(({ sender, client_msg_id }) => [sender.id, client_msg_id]);
    const stored = db.all<Known>(KNOWN, [conversation.id, db.json(keys)]);
    const { uuids, rows } = planImport(messages, stored, before.seq);
    for (const { uuid, seq, message } of rows) {
      db.change(INSERT_IMPORTED, [
        uuid,
        conversation.id,
        seq,
        message.sender.id,
        countsOf(message.sender.kind).agents,
        before.humans,
        before.agents,
        message.content,
        message.client_msg_id,
        message.mentions.length > 0 ? JSON.stringify(message.mentions) : null,
        message.at,
        db.json(message.metadata),
      ]);
    }
    const last = rows.at(-1);
    if (last) db.change(COUNT_IMPORTED, [conversation.id, last.seq, latestTime(rows)]);
    return importResults(conversation, uuids, rows);
  },
};

interface Known {
  readonly uuid: string;
  readonly sender_id: number;
  readonly client_msg_id: string;
}

const KNOWN = `SELECT m.uuid, m.sender_id, m.client_msg_id FROM json_each($2) j
  CROSS JOIN messages m
  ON m.conversation_id = $1 AND m.sender_id = j.value ->> 0 AND m.client_msg_id = j.value ->> 1`;

// The totals stay as they are, so that the messages are unread for nobody.
const INSERT_IMPORTED = `INSERT INTO messages (uuid, conversation_id, seq, version, sender_id, by_agent,
    human_n, agent_n, content, client_msg_id, mentions, created_at, finalized_at, imported, metadata)
  VALUES ($1, $2, $3, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, 1, $12)`;

const COUNT_IMPORTED = `UPDATE counters SET seq = $2, updated_at = ${importedAt("$3", "max")}
  WHERE conversation_id = $1`;
