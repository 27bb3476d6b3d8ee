import type { Account, ComponentUse, File, Message, ReactionSummary, Turn } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../../rules/accounts.ts";
import { iso, isoOrNull } from "../../rules/time.ts";
import { type CallOfMessage, shownCallOfMessage } from "../../rules/tool-calls.ts";
import type { JsonObject } from "../accounts.ts";
import type { MessagePageQuery, MessageRecord, NewMessage } from "../messages.ts";
import type { NonEmpty } from "../non-empty.ts";
import type { StoredAction } from "./components.ts";
import { decoded } from "./json.ts";

/** Columns of a `MessageRow`, from `MESSAGE_TABLES`. */
export const MESSAGE = `m.id, m.uuid, m.conversation_id, c.uuid AS conversation_uuid, m.seq,
  m.version, m.content, m.client_msg_id, m.reply_to_id, m.mentions, m.turn, m.reactions, m.action,
  m.uses, m.created_at, m.edited_at, m.finalized_at, m.deleted_at, a.username, a.kind,
  a.display_name, a.version AS sender_version, a.erased_at, m.imported, m.files, m.tool_calls, m.metadata`;

export const MESSAGE_TABLES = `messages m JOIN accounts a ON a.id = m.sender_id
  JOIN conversations c ON c.id = m.conversation_id`;

/** True unless the viewer, parameter 2, has hidden the message. */
export const NOT_HIDDEN = `NOT EXISTS (SELECT 1 FROM hidden h WHERE h.account_id = $2
  AND h.conversation_id = m.conversation_id AND h.seq = m.seq)`;

/** The messages of the conversation, parameter 1, that the viewer, parameter 2, can see. */
export const VISIBLE_MESSAGES = `SELECT ${MESSAGE} FROM ${MESSAGE_TABLES}
  WHERE m.conversation_id = $1 AND m.deleted_at IS NULL AND ${NOT_HIDDEN}`;

export const OLDER_MESSAGES = `${VISIBLE_MESSAGES} AND m.seq < $3 ORDER BY m.seq DESC LIMIT $4`;
export const NEWER_MESSAGES = `${VISIBLE_MESSAGES} AND m.seq > $3 ORDER BY m.seq LIMIT $4`;

/** For `contextMessages`: the messages up to a position. */
export const CONTEXT_MESSAGES = `${VISIBLE_MESSAGES} AND m.seq <= $3 AND m.finalized_at IS NOT NULL
  ORDER BY m.seq DESC LIMIT $4`;

/** For `contextMessages`: the later answers of the agent. */
export const LATER_ANSWERS = `${VISIBLE_MESSAGES} AND m.seq > $3 AND m.seq <= $4
  AND m.finalized_at IS NOT NULL AND m.sender_id = $5
  AND EXISTS (SELECT 1 FROM turns t JOIN messages g ON g.id = t.trigger_id
    WHERE t.message_id = m.id AND g.seq < $6) ORDER BY m.seq DESC`;

export interface MessageRow extends AccountRow {
  id: number;
  uuid: string;
  conversation_id: number;
  conversation_uuid: string;
  seq: number;
  version: number;
  content: string;
  client_msg_id: string | null;
  reply_to_id: string | null;
  mentions: string[] | null;
  turn: Turn | null;
  reactions: number;
  action: StoredAction | null;
  uses: number;
  created_at: number;
  edited_at: number | null;
  finalized_at: number | null;
  deleted_at: number | null;
  sender_version: number;
  /** SQLite has a number for it. */
  imported: boolean | number;
  files: File[] | null;
  tool_calls: CallOfMessage[] | null;
  metadata: string | JsonObject | null;
}

/** What other tables hold about messages. */
export interface MessageDetails {
  /** The text of a message that streams. */
  streamed(messageId: number): string | undefined;
  reactions(messageId: number): ReactionSummary[] | undefined;
  uses(messageId: number): ComponentUse[] | undefined;
  account(id: number): Account | null | undefined;
}

/** The ids of the rows, and of the accounts, that `toMessage` asks for details about. */
export const detailsNeeded = (rows: readonly MessageRow[]) => ({
  streamed: rows.filter(({ finalized_at }) => finalized_at === null).map(({ id }) => id),
  reactions: rows.filter(({ reactions }) => reactions > 0).map(({ id }) => id),
  uses: rows.filter(showsUses).map(({ id }) => id),
  accounts: rows.flatMap(({ action }) => (action ? [action.by] : [])),
});

/** The uses of a streaming message are shown once it is finalized. */
const showsUses = ({ uses, finalized_at }: MessageRow) => uses > 0 && finalized_at !== null;

export function toMessage(row: MessageRow, details: MessageDetails): Message {
  const { id, action } = row;
  const by = action && details.account(action.by);
  return {
    id: row.uuid,
    conversation_id: row.conversation_uuid,
    seq: row.seq,
    version: row.version,
    sender: publicAccount({ ...row, version: row.sender_version }),
    content: row.finalized_at === null ? (details.streamed(id) ?? "") : row.content,
    client_msg_id: row.client_msg_id,
    reply_to_id: row.reply_to_id,
    created_at: iso(row.created_at),
    edited_at: isoOrNull(row.edited_at),
    finalized_at: isoOrNull(row.finalized_at),
    reactions: (row.reactions > 0 && details.reactions(id)) || [],
    mentions: row.mentions ?? [],
    turn: row.turn,
    action: action && by ? { ...action, by } : null,
    uses: (showsUses(row) && details.uses(id)) || [],
    files: row.files ?? [],
    tool_calls: row.tool_calls?.map(shownCallOfMessage) ?? [],
    ...(row.metadata !== null && { metadata: decoded(row.metadata) }),
    ...(row.imported && { imported: true }),
  };
}

/** The message that an insert has made. */
export function toNewMessage(message: NewMessage, id: string, seq: number): Message {
  const created_at = iso(message.at);
  return {
    id,
    conversation_id: message.conversation.uuid,
    seq,
    version: seq,
    sender: publicAccount(message.sender),
    content: message.content,
    client_msg_id: message.client_msg_id,
    reply_to_id: message.reply_to_id,
    created_at,
    edited_at: null,
    finalized_at: message.turn ? null : created_at,
    reactions: [],
    mentions: [...message.mentions],
    turn: message.turn ?? null,
    action: message.action ? { ...message.action, by: publicAccount(message.action.by) } : null,
    uses: [],
    files: [...(message.files ?? [])],
    tool_calls: [],
    ...(message.metadata && { metadata: message.metadata }),
  };
}

/** Columns of a `MessageRecordRow`, from `MESSAGE_TABLES`. */
export const MESSAGE_RECORD = `m.id, m.uuid, m.conversation_id, c.uuid AS conversation_uuid, m.seq,
  m.sender_id, a.owner_id AS sender_owner_id, a.kind AS sender_kind, m.mentions, m.finalized_at,
  m.deleted_at, m.imported, m.files`;

export const SENT_IN = `SELECT uuid FROM messages WHERE conversation_id = $1 AND sender_id = $2
  AND seq > $3 AND seq <= $4 AND deleted_at IS NULL ORDER BY seq`;

export type MessageRecordRow = Omit<
  MessageRecord,
  "mentions" | "files" | "finalized" | "deleted" | "imported"
> & {
  mentions: string[] | null;
  files: File[] | null;
  finalized_at: number | null;
  deleted_at: number | null;
  imported: boolean | number;
};

export const toMessageRecord = (row: MessageRecordRow): MessageRecord => {
  const { mentions, files, finalized_at, deleted_at, ...record } = row;
  return {
    ...record,
    mentions: mentions ?? [],
    files: files ?? [],
    finalized: finalized_at !== null,
    deleted: deleted_at !== null,
    imported: Boolean(record.imported),
  };
};

/** Turns a message into a tombstone. */
export const DELETE_MESSAGE = `UPDATE messages SET content = '', mentions = NULL, turn = NULL,
    reactions = 0, action = NULL, uses = 0, files = NULL, tool_calls = NULL, metadata = NULL, deleted_at = $2,
    version = $3
  WHERE id = $1`;

/** For those who have not read a message, and have not hidden it, it is no longer unread. */
export const DISCOUNT_DELETED = `UPDATE members
  SET read_humans = read_humans + $3, read_agents = read_agents + $4
  WHERE conversation_id = $1 AND last_read_seq < $2 AND NOT EXISTS (
    SELECT 1 FROM hidden h WHERE h.account_id = members.account_id
    AND h.conversation_id = $1 AND h.seq = $2)`;

/** The conversation of messages that are deleted together. Throws when they cannot be. */
export function conversationOfDeleted(messages: NonEmpty<MessageRecord>): number {
  const [{ conversation_id }] = messages;
  for (const message of messages) {
    checkNotDeleted(message);
    if (message.conversation_id !== conversation_id) {
      throw new Error(`message ${message.uuid} is of another conversation`);
    }
  }
  return conversation_id;
}

export function checkNotDeleted({ uuid, deleted }: MessageRecord): void {
  if (deleted) throw new Error(`message ${uuid} is deleted`);
}

/** `rows` start at the page's anchor and are one more than the limit where there are more. */
export function pageOf<Row>(
  rows: readonly Row[],
  { from, limit }: MessagePageQuery,
): { rows: Row[]; has_more: boolean } {
  const page = rows.slice(0, limit);
  if (from?.direction !== "newer") page.reverse();
  return { rows: page, has_more: rows.length > limit };
}

/** How a message of this sender counts in the totals of people's and agents' messages. */
export const countsOf = (kind: "human" | "agent") =>
  kind === "human" ? { humans: 1, agents: 0 } : { humans: 0, agents: 1 };

/** How a message counts in those totals. Imported ones do not: they are never unread. */
export const countsIn = ({ sender_kind, imported }: MessageRecord) =>
  imported ? { humans: 0, agents: 0 } : countsOf(sender_kind);
