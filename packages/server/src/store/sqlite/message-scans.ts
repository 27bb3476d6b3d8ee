import type { MessageScanReads } from "../message-scans.ts";
import { MESSAGE_RECORD, MESSAGE_TABLES } from "../shared/messages.ts";
import type { Connection } from "./connection.ts";
import { type StoredRecordRow, toStoredRecord } from "./messages.ts";

export function messageScanReads(db: Connection): MessageScanReads {
  const last = db.query<{ id: number }>("SELECT coalesce(max(id), 0) AS id FROM messages");
  const RANGE = "m.id > ?1 AND m.id <= ?2 AND m.deleted_at IS NULL";
  const scan = (filter: string) =>
    db.query<StoredRecordRow>(
      `SELECT ${MESSAGE_RECORD} FROM ${MESSAGE_TABLES} WHERE ${RANGE} AND ${filter} ORDER BY m.id`,
    );
  const bySender = scan("m.sender_id IN (SELECT value FROM json_each(?3))");
  const byTime = scan("m.created_at < ?3");
  const oldest = db.query<{ at: number | null }>(
    `SELECT min(m.created_at) AS at FROM messages m WHERE ${RANGE}`,
  );
  return {
    lastMessageId: () => last.get()?.id ?? 0,
    scanMessages: ({ after, upTo }, filter) => {
      const rows =
        "senderIds" in filter
          ? bySender.all(after, upTo, JSON.stringify(filter.senderIds))
          : byTime.all(after, upTo, filter.before);
      return rows.map(toStoredRecord);
    },
    oldestMessageAt: ({ after, upTo }) => oldest.get(after, upTo)?.at ?? null,
  };
}
