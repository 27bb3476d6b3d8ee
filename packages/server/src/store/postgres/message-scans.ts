import type { MessageScanReads } from "../message-scans.ts";
import { OLDEST_AT, SCAN } from "../shared/message-scans.ts";
import { type MessageRecordRow, toMessageRecord } from "../shared/messages.ts";
import { list, type Methods } from "./unit.ts";

export const messageScanReads: Methods<keyof MessageScanReads> = {
  lastMessageId: async (unit) => {
    const row = await unit.get<{ id: number }>("SELECT coalesce(max(id), 0) AS id FROM messages");
    return row?.id ?? 0;
  },
  scanMessages: async (unit, { after, upTo }, filter) => {
    const rows = await ("senderIds" in filter
      ? unit.all<MessageRecordRow>(
          `${SCAN} AND m.sender_id = ANY($3::bigint[]) ORDER BY m.id`,
          after,
          upTo,
          list(filter.senderIds),
        )
      : unit.all<MessageRecordRow>(
          `${SCAN} AND m.created_at < $3 ORDER BY m.id`,
          after,
          upTo,
          filter.before,
        ));
    return rows.map(toMessageRecord);
  },
  oldestMessageAt: async (unit, { after, upTo }) => {
    const row = await unit.get<{ at: number | null }>(OLDEST_AT, after, upTo);
    return row?.at ?? null;
  },
};
