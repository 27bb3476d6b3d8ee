import type { ConversationRecord } from "../conversations.ts";
import type { ImportedMessage, ImportResult } from "../imported-messages.ts";
import { toNewMessage } from "./messages.ts";

/** A row to insert for an imported message. */
export interface ImportedRow {
  readonly uuid: string;
  readonly seq: number;
  readonly message: ImportedMessage;
}

const importKey = (senderId: number, clientMsgId: string) => `${senderId} ${clientMsgId}`;

/**
 * Decides which messages to insert, and at which places. `known` are those that were stored before;
 * `lastSeq` is the counter before the import.
 */
export function planImport(
  messages: readonly ImportedMessage[],
  known: readonly { uuid: string; sender_id: number; client_msg_id: string }[],
  lastSeq: number,
): { uuids: string[]; rows: ImportedRow[] } {
  const stored = new Map(
    known.map(({ uuid, sender_id, client_msg_id }) => [importKey(sender_id, client_msg_id), uuid]),
  );
  const rows: ImportedRow[] = [];
  const uuids = messages.map((message) => {
    const key = importKey(message.sender.id, message.client_msg_id);
    const existing = stored.get(key);
    if (existing !== undefined) return existing;
    const uuid = Bun.randomUUIDv7();
    stored.set(key, uuid);
    rows.push({ uuid, seq: lastSeq + rows.length + 1, message });
    return uuid;
  });
  return { uuids, rows };
}

/** SQL: `updated_at` of the counters after an import whose latest message has this time. */
export const importedAt = (at: string, later: "greatest" | "max") =>
  `CASE WHEN seq = 0 THEN ${at} ELSE ${later}(updated_at, ${at}) END`;

/** The time of the latest of the inserted messages. */
export const latestTime = (rows: readonly ImportedRow[]) =>
  Math.max(...rows.map(({ message }) => message.at));

/** What an import returns for each of its messages. */
export function importResults(
  conversation: ConversationRecord,
  uuids: readonly string[],
  rows: readonly ImportedRow[],
): ImportResult[] {
  const inserted = new Map(
    rows.map(({ uuid, seq, message }) => {
      const created = { ...message, conversation, reply_to_id: null };
      return [uuid, { ...toNewMessage(created, uuid, seq), imported: true as const }];
    }),
  );
  return uuids.map((uuid) => {
    const message = inserted.get(uuid) ?? null;
    // The same message again, later in the list, is one that was stored before.
    inserted.delete(uuid);
    return { uuid, inserted: message };
  });
}
