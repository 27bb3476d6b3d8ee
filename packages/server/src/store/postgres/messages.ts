import type { File, Turn } from "@parley/protocol";
import { searchedText } from "../../rules/files.ts";
import type { JsonObject } from "../accounts.ts";
import type { MessageReads, MessageRecord, MessageWrites, NewMessage } from "../messages.ts";
import { type StoredAction, toStoredAction } from "../shared/components.ts";
import { mentionDifference, toStoredMentions } from "../shared/mentions.ts";
import {
  CONTEXT_MESSAGES,
  checkNotDeleted,
  conversationOfDeleted,
  countsIn,
  DELETE_MESSAGE,
  DISCOUNT_DELETED,
  LATER_ANSWERS,
  MESSAGE,
  MESSAGE_RECORD,
  MESSAGE_TABLES,
  type MessageRecordRow,
  type MessageRow,
  NEWER_MESSAGES,
  NOT_HIDDEN,
  OLDER_MESSAGES,
  pageOf,
  SENT_IN,
  toMessageRecord,
  toNewMessage,
} from "../shared/messages.ts";
import { LAST_SEQ } from "../shared/updates.ts";
import { incrementCounter } from "./counters.ts";
import { deleteFilesOf } from "./files.ts";
import { mentionWrites } from "./mentions.ts";
import { viewMessages } from "./message-views.ts";
import { reindex, searchVector } from "./search.ts";
import { type Batch, list, type Methods, textList, type Unit } from "./unit.ts";

export const messageReads: Methods<keyof MessageReads> = {
  message: async (unit, uuid) => {
    const place = await unit.get<{ conversation_id: number }>(
      "SELECT conversation_id FROM messages WHERE uuid = $1",
      uuid,
    );
    if (!place) return null;
    await unit.own(place.conversation_id);
    const row = await unit.get<MessageRecordRow>(
      `SELECT ${MESSAGE_RECORD} FROM ${MESSAGE_TABLES} WHERE m.uuid = $1`,
      uuid,
    );
    return row && toMessageRecord(row);
  },
  messageViews: async (unit, uuids, viewerId) =>
    viewMessages(
      unit,
      await unit.all<MessageRow>(
        `SELECT ${MESSAGE} FROM unnest($1::uuid[]) WITH ORDINALITY AS k(uuid, place)
           JOIN messages m ON m.uuid = k.uuid JOIN accounts a ON a.id = m.sender_id
           JOIN conversations c ON c.id = m.conversation_id
         WHERE m.deleted_at IS NULL AND ${NOT_HIDDEN} ORDER BY k.place`,
        list(uuids),
        viewerId,
      ),
      viewerId,
    ),
  sentBefore: async (unit, conversationId, senderId, clientMsgId) => {
    const row = await unit.get<{ uuid: string }>(
      `SELECT uuid FROM messages
       WHERE conversation_id = $1 AND sender_id = $2 AND client_msg_id = $3`,
      conversationId,
      senderId,
      clientMsgId,
    );
    return row?.uuid ?? null;
  },
  sentIn: async (unit, { conversationId, senderId, after, upTo }) => {
    const rows = await unit.all<{ uuid: string }>(SENT_IN, conversationId, senderId, after, upTo);
    return rows.map(({ uuid }) => uuid);
  },
  messagePage: async (unit, query) => {
    const { conversationId, viewerId, from, limit } = query;
    const found = await unit.all<MessageRow>(
      from?.direction === "newer" ? NEWER_MESSAGES : OLDER_MESSAGES,
      conversationId,
      viewerId,
      from?.seq ?? LAST_SEQ,
      limit + 1,
    );
    const { rows, has_more } = pageOf(found, query);
    return { items: await viewMessages(unit, rows, viewerId), has_more };
  },
  contextMessages: async (unit, { conversationId, viewerId, upTo, answers, limit }) => {
    const [later, rows] = await Promise.all([
      unit.all<MessageRow>(
        LATER_ANSWERS,
        conversationId,
        viewerId,
        upTo,
        answers.upTo,
        answers.agentId,
        answers.toBefore,
      ),
      unit.all<MessageRow>(CONTEXT_MESSAGES, conversationId, viewerId, upTo, limit),
    ]);
    return viewMessages(unit, [...later, ...rows], viewerId);
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
  sql: `WITH given AS (
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
        unread_mentions = 0, wrote = true
      FROM counted n WHERE b.conversation_id = n.conversation_id AND b.account_id = n.sender_id
    ), indexed AS (
      INSERT INTO search (message_id, conversation_id, words)
      SELECT i.id, i.conversation_id, n.words FROM inserted i
      JOIN counted n ON n.conversation_id = i.conversation_id WHERE n.words IS NOT NULL
    )
    SELECT conversation_id, seq FROM counted`,
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

export const messageWrites: Methods<keyof MessageWrites> = {
  insertMessage: async (unit, message) => {
    const { conversation, sender, content, turn, files, at } = message;
    await unit.own(conversation.id);
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
    if (message.mentions.length > 0) {
      await mentionWrites.add(unit, message.mentions, conversation.id, seq, sender.id);
    }
    return toNewMessage(message, uuid, seq);
  },
  editMessage: async (unit, message, content, mentions, at) => {
    checkNotDeleted(message);
    const { id, conversation_id, seq, sender_id } = message;
    const version = await incrementCounter(unit, conversation_id);
    await unit.write(
      `UPDATE messages SET content = $2, mentions = $3, edited_at = $4, version = $5 WHERE id = $1`,
      id,
      content,
      toStoredMentions(mentions),
      at,
      version,
    );
    const { removed, added } = mentionDifference(message, mentions);
    if (removed.length > 0) await mentionWrites.remove(unit, removed, conversation_id, seq);
    if (added.length > 0) await mentionWrites.add(unit, added, conversation_id, seq, sender_id);
    await reindex(unit, id, conversation_id, searchedText(content, message.files));
    return version;
  },
  setMessageFiles: async (unit, message, files) => {
    checkNotDeleted(message);
    const { id, conversation_id } = message;
    const version = await incrementCounter(unit, conversation_id);
    await unit.write(
      "UPDATE messages SET files = $2, version = $3 WHERE id = $1",
      id,
      files,
      version,
    );
    return version;
  },
  deleteMessages: async (unit, messages, at) => {
    const version = await incrementCounter(unit, conversationOfDeleted(messages));
    for (const message of messages) await deleteOne(unit, message, at, version);
    return version;
  },
};

async function deleteOne(
  unit: Unit,
  message: MessageRecord,
  at: number,
  version: number,
): Promise<void> {
  const { id, conversation_id, seq } = message;
  const { humans, agents } = countsIn(message);
  if (message.mentions.length > 0) {
    await mentionWrites.remove(unit, message.mentions, conversation_id, seq);
  }
  await Promise.all([
    unit.write(DISCOUNT_DELETED, conversation_id, seq, humans, agents),
    unit.write("DELETE FROM reactions WHERE message_id = $1", id),
    unit.write("DELETE FROM component_uses WHERE message_id = $1", id),
    unit.write("DELETE FROM tool_calls WHERE message_id = $1", id),
    message.files.length > 0 && deleteFilesOf(unit, id),
    unit.write(DELETE_MESSAGE, id, at, version),
    reindex(unit, id, conversation_id, null),
  ]);
}
