import type { MessageReads, MessageWrites } from "../messages.ts";
import { toStoredAction } from "../shared/components.ts";
import { mentionDifference } from "../shared/mentions.ts";
import {
  CONTEXT_MESSAGES,
  checkNotDeleted,
  conversationOfDeleted,
  countsIn,
  countsOf,
  DELETE_MESSAGE,
  DISCOUNT_DELETED,
  LATER_ANSWERS,
  MESSAGE,
  MESSAGE_RECORD,
  MESSAGE_TABLES,
  type MessageRecordRow,
  NEWER_MESSAGES,
  NOT_HIDDEN,
  OLDER_MESSAGES,
  pageOf,
  SENT_IN,
  toMessageRecord,
  toNewMessage,
} from "../shared/messages.ts";
import { LAST_SEQ } from "../shared/updates.ts";
import type { Connection } from "./connection.ts";
import { incrementCounter } from "./counters.ts";
import { deleteFiles } from "./files.ts";
import { mentionWrites, parsedMentions, storedMentions } from "./mentions.ts";
import { parsedFiles, type StoredMessageRow, viewMessages } from "./message-views.ts";

export type StoredRecordRow = Omit<MessageRecordRow, "mentions" | "files"> & {
  mentions: string | null;
  files: string | null;
};

export const toStoredRecord = (row: StoredRecordRow) =>
  toMessageRecord({
    ...row,
    mentions: parsedMentions(row.mentions),
    files: parsedFiles(row.files),
  });

export function messageReads(db: Connection): MessageReads {
  const view = viewMessages(db);
  const record = db.query<StoredRecordRow>(
    `SELECT ${MESSAGE_RECORD} FROM ${MESSAGE_TABLES} WHERE m.uuid = ?`,
  );
  const views = db.query<StoredMessageRow>(
    `SELECT ${MESSAGE} FROM json_each($1) j JOIN ${MESSAGE_TABLES}
     WHERE m.uuid = j.value AND m.deleted_at IS NULL AND ${NOT_HIDDEN} ORDER BY j.key`,
  );
  const sent = db.query<{ uuid: string }>(
    "SELECT uuid FROM messages WHERE conversation_id = ? AND sender_id = ? AND client_msg_id = ?",
  );
  const sentIn = db.query<{ uuid: string }>(SENT_IN);
  const older = db.query<StoredMessageRow>(OLDER_MESSAGES);
  const newer = db.query<StoredMessageRow>(NEWER_MESSAGES);
  const context = db.query<StoredMessageRow>(CONTEXT_MESSAGES);
  const laterAnswers = db.query<StoredMessageRow>(LATER_ANSWERS);

  return {
    message: (uuid) => {
      const row = record.get(uuid);
      if (row) db.own(row.conversation_id);
      return row && toStoredRecord(row);
    },
    messageViews: (uuids, viewerId) => view(views.all(JSON.stringify(uuids), viewerId), viewerId),
    sentBefore: (conversationId, senderId, clientMsgId) =>
      sent.get(conversationId, senderId, clientMsgId)?.uuid ?? null,
    sentIn: ({ conversationId, senderId, after, upTo }) =>
      sentIn.all(conversationId, senderId, after, upTo).map(({ uuid }) => uuid),
    messagePage: (query) => {
      const { conversationId, viewerId, from, limit } = query;
      const beyond = from?.direction === "newer" ? newer : older;
      const found = beyond.all(conversationId, viewerId, from?.seq ?? LAST_SEQ, limit + 1);
      const { rows, has_more } = pageOf(found, query);
      return { items: view(rows, viewerId), has_more };
    },
    contextMessages: ({ conversationId, viewerId, upTo, answers, limit }) => {
      const { agentId, upTo: end, toBefore } = answers;
      const rows = [
        ...laterAnswers.all(conversationId, viewerId, upTo, end, agentId, toBefore),
        ...context.all(conversationId, viewerId, upTo, limit),
      ];
      return view(rows, viewerId);
    },
  };
}

export function messageWrites(db: Connection): MessageWrites {
  return {
    insertMessage: insertMessage(db),
    editMessage: editMessage(db),
    setMessageFiles: setMessageFiles(db),
    deleteMessages: deleteMessages(db),
  };
}

function insertMessage(db: Connection): MessageWrites["insertMessage"] {
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
  const mentions = mentionWrites(db);

  return (message) => {
    const { conversation, sender, content, client_msg_id, reply_to_id, at } = message;
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
      storedMentions(message.mentions),
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
    if (message.mentions.length > 0) {
      mentions.add(message.mentions, conversation.id, seq, sender.id);
    }
    return toNewMessage(message, uuid, seq);
  };
}

function editMessage(db: Connection): MessageWrites["editMessage"] {
  const increment = incrementCounter(db);
  const edit = db.change(
    "UPDATE messages SET content = ?2, mentions = ?3, edited_at = ?4, version = ?5 WHERE id = ?1",
  );
  const reindex = db.change("INSERT INTO search_changes (message_id) VALUES (?)");
  const mentions = mentionWrites(db);

  return (message, content, newMentions, at) => {
    checkNotDeleted(message);
    const { id, conversation_id, seq, sender_id } = message;
    const version = increment(conversation_id);
    edit.run(id, content, storedMentions(newMentions), at, version);
    const { removed, added } = mentionDifference(message, newMentions);
    if (removed.length > 0) mentions.remove(removed, conversation_id, seq);
    if (added.length > 0) mentions.add(added, conversation_id, seq, sender_id);
    reindex.run(id);
    return version;
  };
}

function setMessageFiles(db: Connection): MessageWrites["setMessageFiles"] {
  const increment = incrementCounter(db);
  const update = db.change("UPDATE messages SET files = ?2, version = ?3 WHERE id = ?1");
  return (message, files) => {
    checkNotDeleted(message);
    const version = increment(message.conversation_id);
    update.run(message.id, JSON.stringify(files), version);
    return version;
  };
}

function deleteMessages(db: Connection): MessageWrites["deleteMessages"] {
  const increment = incrementCounter(db);
  const remove = db.change(DELETE_MESSAGE);
  const removeReactions = db.change("DELETE FROM reactions WHERE message_id = ?");
  const removeCalls = db.change("DELETE FROM tool_calls WHERE message_id = ?");
  const removeUses = db.change("DELETE FROM component_uses WHERE message_id = ?");
  const removeFiles = deleteFiles(db, "message_id = ?");
  const discountUnread = db.change(DISCOUNT_DELETED);
  const reindex = db.change("INSERT INTO search_changes (message_id) VALUES (?)");
  const mentions = mentionWrites(db);

  return (messages, at) => {
    const version = increment(conversationOfDeleted(messages));
    for (const message of messages) {
      const { id, conversation_id, seq } = message;
      const { humans, agents } = countsIn(message);
      discountUnread.run(conversation_id, seq, humans, agents);
      if (message.mentions.length > 0) mentions.remove(message.mentions, conversation_id, seq);
      removeReactions.run(id);
      removeUses.run(id);
      removeCalls.run(id);
      if (message.files.length > 0) removeFiles(id);
      remove.run(id, at, version);
      reindex.run(id);
    }
    return version;
  };
}
