import {
  type ImportedMessageWrites,
  importedAt,
  importResults,
  latestTime,
  planImport,
} from "../imported-messages.ts";
import { countsOf } from "../message-records.ts";
import type { Methods } from "../sqlite/sql.ts";
import { countersOf } from "./messages-sqlite.ts";

export const importedMessageWrites: Methods<keyof ImportedMessageWrites> = {
  importMessages: (db, conversation, messages) => {
    db.changes(conversation.id);
    const before = countersOf(db, conversation);
    const keys = messages.map(({ sender, client_msg_id }) => [sender.id, client_msg_id]);
    const stored = db.all<Known>(KNOWN, [conversation.id, db.json(keys)]);
    const { uuids, rows } = planImport(messages, stored, before.seq);
    for (const { uuid, seq, message } of rows) {
      db.change(INSERT, [
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
    if (last) db.change(COUNT, [conversation.id, last.seq, latestTime(rows)]);
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
const INSERT = `INSERT INTO messages (uuid, conversation_id, seq, version, sender_id, by_agent,
    human_n, agent_n, content, client_msg_id, mentions, created_at, finalized_at, imported, metadata)
  VALUES ($1, $2, $3, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, 1, $12)`;

const COUNT = `UPDATE counters SET seq = $2, updated_at = ${importedAt("$3", "max")}
  WHERE conversation_id = $1`;
