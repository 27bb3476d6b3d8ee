import type { File, Turn } from "@parley/protocol";
import type { AccountRecord, JsonObject } from "./accounts.ts";
import { reader, type Sql, sql } from "./sql.ts";

/** A message as units of work handle it. `message-views.ts` has what clients see. */
export interface MessageRecord {
  readonly id: number;
  readonly uuid: string;
  readonly conversation_id: number;
  readonly conversation_uuid: string;
  readonly seq: number;
  readonly sender_id: number;
  readonly sender_owner_id: number | null;
  readonly sender_kind: "human" | "agent";
  readonly mentions: readonly string[];
  readonly files: readonly File[];
  readonly finalized: boolean;
  readonly deleted: boolean;
  /** Imported messages count as read for everybody. */
  readonly imported: boolean;
}

export interface NewMessage {
  conversation: { readonly id: number; readonly uuid: string };
  sender: AccountRecord;
  content: string;
  client_msg_id: string | null;
  reply_to_id: string | null;
  mentions: readonly string[];
  files?: readonly File[];
  /** What a product stores with it. */
  metadata?: JsonObject | undefined;
  /** Set for the placeholder of an agent's answer, which is not finalized yet. */
  turn?: Turn;
  /** Set for the reply to a component action. */
  action?: NewAction;
  at: number;
}

/** The component action that a message replies to. */
export interface NewAction {
  token: string;
  label: string | null;
  by: AccountRecord;
}

export const MESSAGE_TABLES = sql`messages m JOIN accounts a ON a.id = m.sender_id
  JOIN conversations c ON c.id = m.conversation_id`;

export const MESSAGE_RECORDS = sql`SELECT m.id, m.uuid, m.conversation_id, c.uuid AS conversation_uuid,
    m.seq, m.sender_id, a.owner_id AS sender_owner_id, a.kind AS sender_kind, m.imported,
    coalesce(m.mentions, '[]'::jsonb) AS mentions, coalesce(m.files, '[]'::jsonb) AS files,
    m.finalized_at IS NOT NULL AS finalized, m.deleted_at IS NOT NULL AS deleted
  FROM ${MESSAGE_TABLES}`;

export const readMessageRecord = reader<MessageRecord>({
  json: ["mentions", "files"],
  flags: ["finalized", "deleted", "imported"],
});

/** How a message of this sender counts in the totals of people's and agents' messages. */
export const countsOf = (kind: "human" | "agent") =>
  kind === "human" ? { humans: 1, agents: 0 } : { humans: 0, agents: 1 };

/** How a message counts in those totals. Imported ones do not: they are never unread. */
export const countsIn = ({ sender_kind, imported }: MessageRecord) =>
  imported ? { humans: 0, agents: 0 } : countsOf(sender_kind);

/** Row ids of messages that one read examines. */
export const SCANNED_IDS = 5000;

/**
 * Finds messages of all conversations by their row ids, which grow with each new message. Callers read
 * one short range after another, so that no read takes long, however many messages there are.
 */
export const messageScanReads = {
  /** The highest row id of a message; zero when there is none. */
  lastMessageId: (db: Sql) => db.firstNumber`SELECT coalesce(max(id), 0) AS id FROM messages`,
  /** The messages of the range that are not deleted and match, ordered by id. */
  scanMessages: (db: Sql, range: MessageRange, filter: MessageFilter) =>
    db.allAs(readMessageRecord)`
      ${MESSAGE_RECORDS} WHERE ${isIn(range)} AND ${
        "senderIds" in filter
          ? sql`m.sender_id = ANY(${filter.senderIds}::bigint[])`
          : sql`m.created_at < ${filter.before}`
      } ORDER BY m.id`,
  /** When the oldest message of the range that is not deleted was created; null when there is none. */
  oldestMessageAt: (db: Sql, range: MessageRange) =>
    db.firstValue<number>`SELECT min(m.created_at) AS at FROM messages m WHERE ${isIn(range)}`,
};

/** A range of row ids. */
export interface MessageRange {
  /** Exclusive. */
  readonly after: number;
  /** Inclusive. */
  readonly upTo: number;
}

export type MessageFilter =
  /** Messages that one of these accounts has sent. */
  | { readonly senderIds: readonly number[] }
  /** Messages that were created before a time. */
  | { readonly before: number };

const isIn = ({ after, upTo }: MessageRange) =>
  sql`m.id > ${after} AND m.id <= ${upTo} AND m.deleted_at IS NULL`;
