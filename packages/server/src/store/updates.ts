import type { ConversationChange, Message } from "@parley/protocol";
import { groupChangesSince, groupChangeViews } from "./group-changes.ts";
import { MESSAGE_TABLES } from "./message-records.ts";
import {
  clearedIn,
  MESSAGE,
  type MessageRow,
  notHidden,
  viewMessages,
  visibleMessages,
} from "./message-views.ts";
import { LAST_SEQ } from "./messages.ts";
import type { Sql } from "./sql.ts";

export const updateReads = {
  /**
   * A page of what has changed in a conversation since a value of its counter. A page never ends
   * between changes that share a counter value, so it may exceed the limit.
   */
  async updates(db: Sql, query: UpdatesQuery): Promise<Updates> {
    const { conversationId: id, viewerId, since } = query;
    const page = await updatesPage(db, query);
    // One deletion of many messages is one change: the page has all of them. On the last page are the
    // messages that stream: their text grows without being counted.
    const further = await (page.has_more
      ? changedMessages(db, query, { after: page.seq - 1, upTo: page.seq, most: LAST_SEQ })
      : streamingMessages(db, query));
    const found = new Map([...page.messages, ...further].map((row) => [row.id, row]));
    const live = [...found.values()].filter(({ deleted_at }) => deleted_at === null);
    const deleted = [...found.values()].filter(({ deleted_at }) => deleted_at !== null);
    const upTo = page.has_more ? page.seq : LAST_SEQ;
    // CROSS JOIN keeps SQLite from beginning with all messages of the conversation.
    const hidden = await db.column<string>`
      SELECT m.uuid FROM hidden h CROSS JOIN messages m
      WHERE h.account_id = ${viewerId} AND h.conversation_id = ${id}
        AND h.at_seq >= ${since} AND h.at_seq <= ${upTo}
        AND m.conversation_id = h.conversation_id AND m.seq = h.seq AND m.deleted_at IS NULL
        AND h.seq > ${clearedIn(id, viewerId)}`;
    return {
      messages: await viewMessages(db, live, viewerId),
      deleted_ids: [...deleted.map(({ uuid }) => uuid), ...hidden],
      changes: await groupChangeViews(db, page.changes),
      seq: page.seq,
      has_more: page.has_more,
    };
  },
};

/** Cuts a page off what was found, in the order of the counter. */
async function updatesPage(db: Sql, query: UpdatesQuery) {
  const { conversationId: id, viewerId, since, limit } = query;
  const most = limit + 1;
  const [counter, created, changed, changes] = await Promise.all([
    db.firstNumber`SELECT seq FROM counters WHERE conversation_id = ${id}`,
    // The messages that never changed, in the order of the index `messages_live`. The index
    // `messages_changed` has the others in the order of their latest change.
    db.all<MessageRow>`
      ${visibleMessages(id, viewerId)} AND m.seq > ${since} AND m.version = m.seq
      ORDER BY m.seq LIMIT ${most}`,
    changedMessages(db, query, { after: since, upTo: LAST_SEQ, most }),
    groupChangesSince(db, query, most),
  ]);
  const messages = [...created, ...changed].sort((one, other) => one.version - other.version);
  const seqs = [...messages.map(({ version }) => version), ...changes.map(({ seq }) => seq)];
  const end = seqs.sort((one, other) => one - other)[limit - 1];
  const has_more = seqs.length > limit && end !== undefined;
  const seq = has_more ? end : counter;
  return {
    messages: messages.filter(({ version }) => version <= seq),
    changes: changes.filter((change) => change.seq <= seq),
    seq,
    has_more,
  };
}

export interface UpdatesQuery {
  conversationId: number;
  viewerId: number;
  since: number;
  limit: number;
}

/** The next page starts after `seq`. */
export interface Updates {
  /** New and changed messages by their latest change; on the last page also those that stream. */
  messages: Message[];
  /** Messages that were deleted, or that the viewer has hidden. */
  deleted_ids: string[];
  changes: ConversationChange[];
  seq: number;
  has_more: boolean;
}

/** The messages that changed after a value of the counter and up to another, in that order. */
const changedMessages = (
  db: Sql,
  { conversationId, viewerId }: UpdatesQuery,
  { after, upTo, most }: { after: number; upTo: number; most: number },
) => db.all<MessageRow>`
  SELECT ${MESSAGE} FROM ${MESSAGE_TABLES}
  WHERE m.conversation_id = ${conversationId} AND m.version > m.seq
    AND m.version > ${after} AND m.version <= ${upTo}
    AND (m.deleted_at IS NOT NULL OR ${notHidden(viewerId)})
    AND m.seq > ${clearedIn(conversationId, viewerId)} ORDER BY m.version LIMIT ${most}`;

/** With the condition of the index. Waiting turns have no message. */
const streamingMessages = (db: Sql, { conversationId, viewerId, since }: UpdatesQuery) =>
  db.all<MessageRow>`
    SELECT ${MESSAGE} FROM turns t JOIN messages m ON m.id = t.message_id
    JOIN accounts a ON a.id = m.sender_id JOIN conversations c ON c.id = m.conversation_id
    WHERE t.conversation_id = ${conversationId} AND t.status IN ('waiting', 'running')
      AND m.seq <= ${since} AND m.version <= ${since} AND m.deleted_at IS NULL
      AND ${notHidden(viewerId)} AND m.seq > ${clearedIn(conversationId, viewerId)}`;
