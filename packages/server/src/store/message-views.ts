import type { File, Message, Turn } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../rules/accounts.ts";
import { iso, isoOrNull } from "../rules/time.ts";
import { type CallOfMessage, shownCallOfMessage } from "../rules/tool-calls.ts";
import { accountsById } from "./account-records.ts";
import type { JsonObject } from "./accounts.ts";
import { componentUses } from "./components.ts";
import { MESSAGE_TABLES, type NewMessage } from "./message-records.ts";
import { reactionSummaries } from "./reactions.ts";
import { decoded, type Part, raw, type Sql, sql } from "./sql.ts";

/** Columns of a `MessageRow`, from `MESSAGE_TABLES`. */
export const MESSAGE = sql`m.id, m.uuid, m.conversation_id, c.uuid AS conversation_uuid, m.seq,
  m.version, m.content, m.client_msg_id, m.reply_to_id, m.mentions, m.turn, m.reactions, m.action,
  m.uses, m.created_at, m.edited_at, m.finalized_at, m.deleted_at, a.username, a.kind,
  a.display_name, a.version AS sender_version, a.erased_at, m.imported, m.files, m.tool_calls, m.metadata`;

/** True unless the viewer has hidden the message. */
export const notHidden = (viewerId: number) => sql`NOT EXISTS (SELECT 1 FROM hidden h
  WHERE h.account_id = ${viewerId} AND h.conversation_id = m.conversation_id AND h.seq = m.seq)`;

/** Up to which value of the counter the viewer has cleared a conversation. */
export const clearedIn = (conversation: Part, viewerId: number) => sql`
  coalesce((SELECT v.cleared_seq FROM members v
    WHERE v.conversation_id = ${conversation} AND v.account_id = ${viewerId}), 0)`;

/** The messages of the conversation that the viewer has not hidden. */
export const unhiddenMessages = (conversationId: number, viewerId: number) => sql`
  SELECT ${MESSAGE} FROM ${MESSAGE_TABLES}
  WHERE m.conversation_id = ${conversationId} AND m.deleted_at IS NULL AND ${notHidden(viewerId)}`;

/** The messages of the conversation that the viewer can see. */
export const visibleMessages = (conversationId: number, viewerId: number) => sql`
  ${unhiddenMessages(conversationId, viewerId)}
  AND m.seq > ${clearedIn(conversationId, viewerId)}`;

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
  mentions: string | string[] | null;
  turn: string | Turn | null;
  reactions: number;
  action: string | StoredAction | null;
  uses: number;
  created_at: number;
  edited_at: number | null;
  finalized_at: number | null;
  deleted_at: number | null;
  sender_version: number;
  imported: boolean | number;
  files: string | File[] | null;
  tool_calls: string | CallOfMessage[] | null;
  metadata: string | JsonObject | null;
}

/** What a message row stores about the component action that it replies to. */
export interface StoredAction {
  token: string;
  label: string | null;
  by: number;
}

export const toStoredAction = ({ action }: NewMessage): StoredAction | null =>
  action ? { token: action.token, label: action.label, by: action.by.id } : null;

/** Converts rows to messages as a viewer sees them. */
export async function viewMessages(db: Sql, rows: readonly MessageRow[], viewerId: number) {
  const details = rows.some(hasDetails) ? await detailsOf(db, rows, viewerId) : NO_DETAILS;
  return rows.map((row) => toMessage(row, details));
}

const streams = ({ finalized_at }: MessageRow) => finalized_at === null;
/** The uses of a streaming message are shown once it is finalized. */
const showsUses = (row: MessageRow) => row.uses > 0 && !streams(row);
const isReacted = ({ reactions }: MessageRow) => reactions > 0;

/** Whether other tables have something of a message. */
const hasDetails = (row: MessageRow) =>
  streams(row) || isReacted(row) || row.uses > 0 || row.action !== null;

/** What other tables have of messages, by the id of the message, and accounts by their own. */
type Details = Awaited<ReturnType<typeof detailsOf>>;

const NO_DETAILS: Details = [new Map(), new Map(), new Map(), new Map()];

function detailsOf(db: Sql, rows: readonly MessageRow[], viewerId: number) {
  const idsOf = (isMeant: (row: MessageRow) => boolean) => rows.filter(isMeant).map(({ id }) => id);
  const actors = rows.flatMap(({ action }) => decoded(action)?.by ?? []);
  return Promise.all([
    streamedTexts(db, idsOf(streams)),
    reactionSummaries(db, idsOf(isReacted), viewerId),
    componentUses(db, idsOf(showsUses)),
    accountsById(db, actors),
  ]);
}

function toMessage(row: MessageRow, [streamed, reactions, uses, accounts]: Details): Message {
  const { id, username, kind, display_name, sender_version, erased_at = null } = row;
  const action = decoded(row.action);
  const by = action && accounts.get(action.by);
  return {
    id: row.uuid,
    conversation_id: row.conversation_uuid,
    seq: row.seq,
    version: row.version,
    sender: publicAccount({ username, kind, display_name, version: sender_version, erased_at }),
    content: streams(row) ? (streamed.get(id) ?? "") : row.content,
    client_msg_id: row.client_msg_id,
    reply_to_id: row.reply_to_id,
    created_at: iso(row.created_at),
    edited_at: isoOrNull(row.edited_at),
    finalized_at: isoOrNull(row.finalized_at),
    reactions: reactions.get(id) ?? [],
    mentions: decoded(row.mentions) ?? [],
    turn: decoded(row.turn),
    action: action && by ? { ...action, by } : null,
    uses: uses.get(id) ?? [],
    files: decoded(row.files) ?? [],
    tool_calls: decoded(row.tool_calls)?.map(shownCallOfMessage) ?? [],
    ...(row.metadata !== null && { metadata: decoded(row.metadata) }),
    ...(row.imported && { imported: true }),
  };
}

/** The latest message of each conversation that a viewer can see. */
export async function latestMessages(
  db: Sql,
  conversationIds: readonly number[],
  viewerId: number,
): Promise<Map<number, Message>> {
  if (conversationIds.length === 0) return new Map();
  const [id] = conversationIds;
  // A list costs more than a single id.
  const rows = await (conversationIds.length === 1 && id !== undefined
    ? db.all<MessageRow>`${visibleMessages(id, viewerId)} ORDER BY m.seq DESC LIMIT 1`
    : db.all<MessageRow>`
      SELECT ${MESSAGE} FROM unnest(${conversationIds}::bigint[]) AS k (id)
      JOIN messages m ON m.id = (SELECT m.id FROM messages m WHERE m.conversation_id = k.id
        AND m.deleted_at IS NULL AND ${notHidden(viewerId)}
        AND m.seq > ${clearedIn(raw("k.id"), viewerId)} ORDER BY m.seq DESC LIMIT 1)
      JOIN accounts a ON a.id = m.sender_id JOIN conversations c ON c.id = m.conversation_id`);
  const messages = await viewMessages(db, rows, viewerId);
  return new Map(rows.map((row, place) => [row.conversation_id, messages[place] as Message]));
}

/** The texts that messages have streamed so far. */
async function streamedTexts(db: Sql, messageIds: readonly number[]): Promise<Map<number, string>> {
  const texts = new Map<number, string>();
  if (messageIds.length === 0) return texts;
  const rows = await db.all<{ message_id: number; text: string }>`
    SELECT message_id, text FROM chunks WHERE message_id = ANY(${messageIds}::bigint[])
    ORDER BY message_id, byte_offset`;
  for (const { message_id, text } of rows) {
    texts.set(message_id, (texts.get(message_id) ?? "") + text);
  }
  return texts;
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
