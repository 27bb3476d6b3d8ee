import {
  MESSAGE_RECORDS,
  type MessageRecord,
  type MessageRecordRow,
  toMessageRecord,
} from "./message-records.ts";
import { firstNumber, firstValue, type Sql } from "./sql.ts";

/** Row ids of messages that one read examines. */
export const SCANNED_IDS = 5000;

/**
 * Finds messages of all conversations by their row ids, which grow with each new message. Callers read
 * one short range after another, so that no read takes long, however many messages there are.
 */
export const messageScanReads = {
  /** The highest row id of a message; zero when there is none. */
  lastMessageId: (db: Sql) => firstNumber(db, "SELECT coalesce(max(id), 0) AS id FROM messages"),
  /** The messages of the range that are not deleted and match, ordered by id. */
  async scanMessages(
    db: Sql,
    { after, upTo }: MessageRange,
    filter: MessageFilter,
  ): Promise<MessageRecord[]> {
    const scan = (matches: string) =>
      `${MESSAGE_RECORDS} WHERE ${IN_RANGE} AND ${matches} ORDER BY m.id`;
    const rows = await ("senderIds" in filter
      ? db.all<MessageRecordRow>(scan("m.sender_id = ANY($3::bigint[])"), [
          after,
          upTo,
          db.list(filter.senderIds),
        ])
      : db.all<MessageRecordRow>(scan("m.created_at < $3"), [after, upTo, filter.before]));
    return rows.map(toMessageRecord);
  },
  /** When the oldest message of the range that is not deleted was created; null when there is none. */
  oldestMessageAt: (db: Sql, { after, upTo }: MessageRange) =>
    firstValue<number>(db, `SELECT min(m.created_at) AS at FROM messages m WHERE ${IN_RANGE}`, [
      after,
      upTo,
    ]),
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

const IN_RANGE = "m.id > $1 AND m.id <= $2 AND m.deleted_at IS NULL";
