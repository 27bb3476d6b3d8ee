import type { File, Turn } from "@parley/protocol";
import { searchedText } from "../../rules/files.ts";
import type { JsonObject } from "../accounts.ts";
import {
  type ImportedMessageWrites,
  type ImportedRow,
  importedAt,
  importResults,
  type KnownMessage,
  planImport,
} from "../imported-messages.ts";
import { addMentions } from "../mentions.ts";
import type { NewMessage } from "../message-records.ts";
import { type StoredAction, toNewMessage, toStoredAction } from "../message-views.ts";
import type { HotMessageWrites } from "../messages.ts";
import { searchVector } from "../postgres/search.ts";
import { type Batch, list, textList } from "../postgres/transaction.ts";
import { type Methods, prepared } from "../postgres/unit.ts";
import { json, sql } from "../sql.ts";

export const hotMessageWrites: Methods<keyof HotMessageWrites> = {
  insertMessage: async (unit, message) => {
    const { conversation, sender, content, turn, files, at } = message;
    unit.changes(conversation.id);
    const uuid = Bun.randomUUIDv7();
    const seq = await unit.together(INSERT, {
      uuid,
      conversation_id: conversation.id,
      sender_id: sender.id,
      by_agent: sender.kind === "agent",
      content,
      client_msg_id: message.client_msg_id,
      details: detailsOf(message),
      at,
      words: turn ? null : searchVector(conversation.id, searchedText(content, files ?? [])),
    });
    if (seq === null) return null;
    const place = { conversation_id: conversation.id, seq, sender_id: sender.id };
    await addMentions(unit, message.mentions, place);
    return toNewMessage(message, uuid, seq);
  },
};

interface NewRow {
  uuid: string;
  conversation_id: number;
  sender_id: number;
  by_agent: boolean;
  content: string;
  client_msg_id: string | null;
  /** What few messages have; null for those that have nothing of it. */
  details: Details | null;
  at: number;
  words: string | null;
}

/** Fields without a value are left out: `->` reads them as NULL. */
interface Details {
  reply_to_id?: string;
  mentions?: readonly string[];
  turn?: Turn;
  action?: StoredAction;
  files?: readonly File[];
  metadata?: JsonObject;
}

/**
 * Inserts many messages, each of another conversation, by one statement: it increments the counters,
 * inserts the messages, moves their senders' read positions, and indexes them for search.
 */
const INSERT: Batch<NewRow, number | null> = {
  statement: prepared(sql`
    WITH given AS (
      SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::boolean[], $5::text[],
        $6::text[], $7::jsonb[], $8::bigint[], $9::tsvector[]) AS g (uuid, conversation_id, sender_id,
        by_agent, content, client_msg_id, details, at, words)
    ), counted AS (
      UPDATE counters k SET seq = k.seq + 1, updated_at = g.at,
        humans = k.humans + CASE WHEN g.by_agent THEN 0 ELSE 1 END,
        agents = k.agents + CASE WHEN g.by_agent THEN 1 ELSE 0 END
      FROM given g WHERE k.conversation_id = g.conversation_id AND (g.client_msg_id IS NULL
        OR NOT EXISTS (SELECT 1 FROM messages m WHERE m.conversation_id = g.conversation_id
          AND m.sender_id = g.sender_id AND m.client_msg_id = g.client_msg_id))
      RETURNING g.*, k.seq, k.humans, k.agents
    ), inserted AS (
      INSERT INTO messages (uuid, conversation_id, seq, version, sender_id, by_agent, human_n,
        agent_n, content, client_msg_id, reply_to_id, mentions, turn, action, files, metadata,
        created_at, finalized_at)
      SELECT uuid, conversation_id, seq, seq, sender_id, by_agent, humans, agents, content,
        client_msg_id, (details ->> 'reply_to_id')::uuid, details -> 'mentions', details -> 'turn',
        details -> 'action', details -> 'files', details -> 'metadata', at,
        CASE WHEN details -> 'turn' IS NULL THEN at END
      FROM counted RETURNING id, conversation_id
    ), seen AS (
      UPDATE members b SET last_read_seq = n.seq, read_humans = n.humans, read_agents = n.agents,
        shown_read_seq = NULL, unread_mentions = 0, wrote = true
      FROM counted n WHERE b.conversation_id = n.conversation_id AND b.account_id = n.sender_id
    ), indexed AS (
      INSERT INTO search (message_id, conversation_id, words)
      SELECT i.id, i.conversation_id, n.words FROM inserted i
      JOIN counted n ON n.conversation_id = i.conversation_id WHERE n.words IS NOT NULL
    )
    SELECT conversation_id, seq FROM counted`),
  writes: true,
  // Arrays: PostgreSQL parses them at half the cost of a JSON list of objects.
  values: (rows) => [
    list(rows.map((row) => row.uuid)),
    list(rows.map((row) => row.conversation_id)),
    list(rows.map((row) => row.sender_id)),
    list(rows.map((row) => `${row.by_agent}`)),
    textList(rows.map((row) => row.content)),
    textList(rows.map((row) => row.client_msg_id)),
    textList(rows.map(({ details }) => details && JSON.stringify(details))),
    list(rows.map((row) => row.at)),
    textList(rows.map((row) => row.words)),
  ],
  results: (found: readonly { conversation_id: number; seq: number }[], rows) => {
    const seqs = new Map(found.map((row) => [row.conversation_id, row.seq]));
    return rows.map((row) => seqs.get(row.conversation_id) ?? null);
  },
};

function detailsOf(message: NewMessage): Details | null {
  const { reply_to_id, mentions, turn, files, metadata } = message;
  const action = toStoredAction(message);
  if (!reply_to_id && mentions.length === 0 && !turn && !action && !files && !metadata) return null;
  return {
    ...(reply_to_id && { reply_to_id }),
    ...(mentions.length > 0 && { mentions }),
    ...(turn && { turn }),
    ...(action && { action }),
    ...(files && { files }),
    ...(metadata && { metadata }),
  };
}

export const importedMessageWrites: Methods<keyof ImportedMessageWrites> = {
  importMessages: async (unit, conversation, messages) => {
    const { id } = conversation;
    unit.changes(id);
    const sent = messages.map((each) => ({
      sender_id: each.sender.id,
      client_msg_id: each.client_msg_id,
    }));
    const [before, stored] = await Promise.all([
      unit.get<{ seq: number }>`SELECT seq FROM counters WHERE conversation_id = ${id}`,
      unit.all<KnownMessage>`
        SELECT m.uuid, m.sender_id, m.client_msg_id
        FROM jsonb_to_recordset(${json(sent)}::jsonb) AS g (sender_id bigint, client_msg_id text)
        JOIN messages m ON m.conversation_id = ${id} AND m.sender_id = g.sender_id
          AND m.client_msg_id = g.client_msg_id`,
    ]);
    if (!before) throw new Error(`conversation ${id} has no counters`);
    const { uuids, rows } = planImport(messages, stored, before.seq);
    const last = rows.at(-1);
    // The totals stay as they are, so that the messages are unread for nobody.
    if (last) {
      await unit.write`
        WITH given AS (
          SELECT * FROM jsonb_to_recordset(${json(rows.map(toImportRow(id)))}::jsonb) AS g (uuid uuid,
            seq bigint, sender_id bigint, by_agent boolean, content text, client_msg_id text,
            mentions jsonb, metadata jsonb, at bigint, words text)
        ), counted AS (
          UPDATE counters SET seq = ${last.seq}, updated_at = ${importedAt(rows)}
          WHERE conversation_id = ${id}
          RETURNING humans, agents
        ), inserted AS (
          INSERT INTO messages (uuid, conversation_id, seq, version, sender_id, by_agent, human_n,
            agent_n, content, client_msg_id, mentions, metadata, created_at, finalized_at, imported)
          SELECT g.uuid, ${id}, g.seq, g.seq, g.sender_id, g.by_agent, n.humans, n.agents,
            g.content,
            g.client_msg_id, g.mentions, g.metadata, g.at, g.at, true
          FROM given g CROSS JOIN counted n ORDER BY g.seq
          RETURNING id, uuid
        )
        INSERT INTO search (message_id, conversation_id, words)
        SELECT i.id, ${id}, g.words::tsvector FROM inserted i JOIN given g ON g.uuid = i.uuid`;
    }
    return importResults(conversation, uuids, rows);
  },
};

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
