import type { MessageScanReads } from "../message-scans.ts";
import { OLDEST_AT, SCAN } from "../shared/message-scans.ts";
import type { Connection } from "./connection.ts";
import { type StoredRecordRow, toStoredRecord } from "./messages.ts";

export function messageScanReads(db: Connection): MessageScanReads {
  const last = db.query<{ id: number }>("SELECT coalesce(max(id), 0) AS id FROM messages");
  const bySender = db.query<StoredRecordRow>(
    `${SCAN} AND m.sender_id IN (SELECT value FROM json_each($3)) ORDER BY m.id`,
  );
  const byTime = db.query<StoredRecordRow>(`${SCAN} AND m.created_at < $3 ORDER BY m.id`);
  const oldest = db.query<{ at: number | null }>(OLDEST_AT);
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
