import type { File, Message } from "@parley/protocol";
import { searchedText } from "../rules/files.ts";
import type { Awaitable } from "./awaitable.ts";
import { incrementCounter } from "./counters.ts";
import { deleteFilesOf } from "./files.ts";
import { addMentions, removeMentions, toStoredMentions } from "./mentions.ts";
import {
  countsIn,
  MESSAGE_RECORDS,
  type MessageRecord,
  type NewMessage,
  readMessageRecord,
} from "./message-records.ts";
import {
  clearedIn,
  MESSAGE,
  type MessageRow,
  notHidden,
  unhiddenMessages,
  viewMessages,
  visibleMessages,
} from "./message-views.ts";
import type { NonEmpty } from "./non-empty.ts";
import { json, raw, type Sql, sql } from "./sql.ts";

/** Messages are visible to a viewer unless they are deleted, or the viewer has hidden or cleared them. */
export const messageReads = {
  /** The message, deleted or not. A write unit owns its conversation from then on. */
  async message(db: Sql, uuid: string): Promise<MessageRecord | null> {
    const row = await db.getOwned(
      sql`SELECT conversation_id FROM messages WHERE uuid = ${uuid}`,
      sql`${MESSAGE_RECORDS} WHERE m.uuid = ${uuid}`,
    );
    return row && readMessageRecord(row);
  },
  /** The subset of these messages that the viewer can see, in the given order. */
  async messageViews(db: Sql, uuids: readonly string[], viewerId: number): Promise<Message[]> {
    const rows = await db.all<MessageRow>`
      SELECT ${MESSAGE} FROM unnest(${uuids}::uuid[]) WITH ORDINALITY AS k (uuid, place)
      JOIN messages m ON m.uuid = k.uuid
      JOIN accounts a ON a.id = m.sender_id JOIN conversations c ON c.id = m.conversation_id
      WHERE m.deleted_at IS NULL AND ${notHidden(viewerId)}
        AND m.seq > ${clearedIn(raw("m.conversation_id"), viewerId)} ORDER BY k.place`;
    return viewMessages(db, rows, viewerId);
  },
  /** The uuid of the message that was sent with this `client_msg_id`, deleted or not. */
  sentBefore: (db: Sql, conversationId: number, senderId: number, clientMsgId: string) =>
    db.firstValue<string>`
      SELECT uuid FROM messages
      WHERE conversation_id = ${conversationId} AND sender_id = ${senderId}
        AND client_msg_id = ${clientMsgId}`,
  /** The uuids of an account's messages in a range that are not deleted, oldest first. */
  sentIn: (db: Sql, query: SentQuery) =>
    db.column<string>`
      SELECT uuid FROM messages
      WHERE conversation_id = ${query.conversationId} AND sender_id = ${query.senderId}
        AND seq > ${query.after} AND seq <= ${query.upTo} AND deleted_at IS NULL ORDER BY seq`,
  /** A page of messages that the viewer can see, oldest first. */
  async messagePage(db: Sql, { conversationId, viewerId, from, limit }: MessagePageQuery) {
    const isNewer = from?.direction === "newer";
    const visible = visibleMessages(conversationId, viewerId);
    const rows = isNewer
      ? await db.all<MessageRow>`
        ${visible} AND m.seq > ${from.seq} ORDER BY m.seq LIMIT ${limit + 1}`
      : await db.all<MessageRow>`
        ${visible} AND m.seq < ${from?.seq ?? LAST_SEQ} ORDER BY m.seq DESC LIMIT ${limit + 1}`;
    const page = rows.slice(0, limit);
    if (!isNewer) page.reverse();
    return { items: await viewMessages(db, page, viewerId), has_more: rows.length > limit };
  },
  /**
   * Finalized messages in a range that the viewer has not hidden, newest first, and the agent's later
   * answers to messages before the one that it is about to answer.
   */
  async contextMessages(db: Sql, query: ContextQuery): Promise<Message[]> {
    const { conversationId, viewerId, after = 0, upTo, answers, limit } = query;
    const visible = unhiddenMessages(conversationId, viewerId);
    const [later, earlier] = await Promise.all([
      db.all<MessageRow>`
        ${visible} AND m.seq > ${upTo} AND m.seq <= ${answers.upTo}
          AND m.finalized_at IS NOT NULL AND m.sender_id = ${answers.agentId}
          AND EXISTS (SELECT 1 FROM turns t JOIN messages g ON g.id = t.trigger_id
            WHERE t.message_id = m.id AND g.seq < ${answers.toBefore}) ORDER BY m.seq DESC`,
      db.all<MessageRow>`
        ${visible} AND m.seq <= ${upTo} AND m.seq > ${after} AND m.finalized_at IS NOT NULL
        ORDER BY m.seq DESC LIMIT ${limit}`,
    ]);
    return viewMessages(db, [...later, ...earlier], viewerId);
  },
};

export const messageWrites = {
  /**
   * Replaces the text and the mentions. Increments the counter and returns its new value. Throws for a
   * deleted message.
   */
  async editMessage(
    db: Sql,
    message: MessageRecord,
    content: string,
    mentions: readonly string[],
    at: number,
  ): Promise<number> {
    checkNotDeleted(message);
    const { id, mentions: before } = message;
    const version = await incrementCounter(db, message.conversation_id);
    await db.change`
      UPDATE messages SET content = ${content}, mentions = ${toStoredMentions(mentions)},
        edited_at = ${at}, version = ${version} WHERE id = ${id}`;
    // Imported messages are unread for nobody.
    if (!message.imported) {
      const removed = before.filter((username) => !mentions.includes(username));
      const added = mentions.filter((username) => !before.includes(username));
      if (removed.length > 0) await removeMentions(db, removed, message);
      if (added.length > 0) await addMentions(db, added, message);
    }
    await db.index(message, searchedText(content, message.files));
    return version;
  },
  /**
   * Replaces what a message shows of its files. Increments the counter and returns its new value.
   * Throws for a deleted message.
   */
  async setMessageFiles(db: Sql, message: MessageRecord, files: readonly File[]): Promise<number> {
    checkNotDeleted(message);
    const version = await incrementCounter(db, message.conversation_id);
    await db.update("messages", { id: message.id }, { files: json(files), version });
    return version;
  },
  /**
   * Turns messages into tombstones. Increments the counter once for all of them and returns its new
   * value. Throws when they are of several conversations, or one of them is deleted already.
   */
  async deleteMessages(db: Sql, messages: NonEmpty<MessageRecord>, at: number): Promise<number> {
    const [{ conversation_id }] = messages;
    for (const message of messages) {
      checkNotDeleted(message);
      if (message.conversation_id === conversation_id) continue;
      throw new Error(`message ${message.uuid} is of another conversation`);
    }
    const version = await incrementCounter(db, conversation_id);
    for (const message of messages) await deleteMessage(db, message, at, version);
    return version;
  },
};

/** Each dialect has its own form in `hot/`: a send is what servers do most. */
export interface HotMessageWrites {
  /**
   * Inserts a message and increments the counter of its conversation. The message is unread for the
   * other members; its sender has read everything up to it. Returns null, and changes nothing, when the
   * sender has used the `client_msg_id` in the conversation before.
   */
  insertMessage(message: NewMessage): Awaitable<Message | null>;
}

/** Messages of one sender in a range of a conversation's counter. */
export interface SentQuery {
  conversationId: number;
  senderId: number;
  /** Exclusive. */
  after: number;
  /** Inclusive. */
  upTo: number;
}

export interface MessagePageQuery {
  conversationId: number;
  viewerId: number;
  /** Return messages beyond this position; without it, the latest. */
  from?: { seq: number; direction: "older" | "newer" } | undefined;
  limit: number;
}

export interface ContextQuery {
  conversationId: number;
  viewerId: number;
  /** Return messages after this position. Default: all. */
  after?: number | undefined;
  /** Return messages up to this position. */
  upTo: number;
  /** Also return later answers of the agent, up to `upTo`, to messages before `toBefore`. */
  answers: { agentId: number; upTo: number; toBefore: number };
  /** Number of messages up to the position; later answers are not limited. */
  limit: number;
}

/** Larger than any counter value. */
export const LAST_SEQ = Number.MAX_SAFE_INTEGER;

/** Turns a message into a tombstone. */
async function deleteMessage(db: Sql, message: MessageRecord, at: number, version: number) {
  const { id, conversation_id, seq } = message;
  const { humans, agents } = countsIn(message);
  await removeMentions(db, message.mentions, message);
  await Promise.all([
    // For those who have not read the message, and have not hidden it, it is no longer unread.
    db.change`
      UPDATE members SET read_humans = read_humans + ${humans},
        read_agents = read_agents + ${agents}
      WHERE conversation_id = ${conversation_id} AND last_read_seq < ${seq} AND NOT EXISTS (
        SELECT 1 FROM hidden h WHERE h.account_id = members.account_id
          AND h.conversation_id = ${conversation_id} AND h.seq = ${seq})`,
    db.change`DELETE FROM reactions WHERE message_id = ${id}`,
    db.change`DELETE FROM component_uses WHERE message_id = ${id}`,
    db.change`DELETE FROM tool_calls WHERE message_id = ${id}`,
    message.files.length > 0 && deleteFilesOf(db, id),
    db.change`
      UPDATE messages SET content = '', mentions = NULL, turn = NULL, reactions = 0, action = NULL,
        uses = 0, files = NULL, tool_calls = NULL, metadata = NULL, deleted_at = ${at},
        version = ${version}
      WHERE id = ${id}`,
    db.index(message, null),
  ]);
}

function checkNotDeleted({ uuid, deleted }: MessageRecord): void {
  if (deleted) throw new Error(`message ${uuid} is deleted`);
}
