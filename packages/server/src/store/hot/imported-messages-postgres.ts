import {
  type ImportedMessageWrites,
  type ImportedRow,
  importedAt,
  importResults,
  latestTime,
  planImport,
} from "../imported-messages.ts";
import { searchVector } from "../postgres/search.ts";
import type { Methods } from "../postgres/unit.ts";

export const importedMessageWrites: Methods<keyof ImportedMessageWrites> = {
  importMessages: async (unit, conversation, messages) => {
    const { id } = conversation;
    unit.changes(id);
    const [before, stored] = await Promise.all([
      unit.get<{ seq: number }>("SELECT seq FROM counters WHERE conversation_id = $1", [id]),
      unit.all<{ uuid: string; sender_id: number; client_msg_id: string }>(
        `SELECT m.uuid, m.sender_id, m.client_msg_id
         FROM jsonb_to_recordset($2::jsonb) AS g (sender_id bigint, client_msg_id text)
         JOIN messages m ON m.conversation_id = $1 AND m.sender_id = g.sender_id
           AND m.client_msg_id = g.client_msg_id`,
        [
          id,
          messages.map(({ sender, client_msg_id }) => ({ sender_id: sender.id, client_msg_id })),
        ],
      ),
    ]);
    if (!before) throw new Error(`conversation ${id} has no counters`);
    const { uuids, rows } = planImport(messages, stored, before.seq);
    const last = rows.at(-1);
    if (last) {
      await unit.write(IMPORT, [id, rows.map(toImportRow(id)), last.seq, latestTime(rows)]);
    }
    return importResults(conversation, uuids, rows);
  },
};

/** Inserts imported messages. The totals stay as they are, so that they are unread for nobody. */
const IMPORT = `WITH given AS (
    SELECT * FROM jsonb_to_recordset($2::jsonb) AS g (uuid uuid, seq bigint, sender_id bigint,
      by_agent boolean, content text, client_msg_id text, mentions jsonb, metadata jsonb, at bigint,
      words text)
  ), counted AS (
    UPDATE counters SET seq = $3, updated_at = ${importedAt("$4::bigint", "greatest")}
    WHERE conversation_id = $1
    RETURNING humans, agents
  ), inserted AS (
    INSERT INTO messages (uuid, conversation_id, seq, version, sender_id, by_agent, human_n,
      agent_n, content, client_msg_id, mentions, metadata, created_at, finalized_at, imported)
    SELECT g.uuid, $1, g.seq, g.seq, g.sender_id, g.by_agent, n.humans, n.agents, g.content,
      g.client_msg_id, g.mentions, g.metadata, g.at, g.at, true
    FROM given g CROSS JOIN counted n ORDER BY g.seq
    RETURNING id, uuid
  )
  INSERT INTO search (message_id, conversation_id, words)
  SELECT i.id, $1, g.words::tsvector FROM inserted i JOIN given g ON g.uuid = i.uuid`;

const toImportRow =
  (conversationId: number) =>
  ({ uuid, seq, message }: ImportedRow) => ({
    uuid,
    seq,
    sender_id: message.sender.id,
    by_agent: message.sender.kind === "agent",
    content: message.content,
    client_msg_id: message.client_msg_id,
    mentions: message.mentions.length > 0 ? message.mentions : null,
    metadata: message.metadata ?? null,
    at: message.at,
    words: searchVector(conversationId, message.content),
  });
