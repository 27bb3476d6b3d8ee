import type { Message } from "@parley/protocol";
import type { AccountRecord, JsonObject } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";
import type { ConversationRecord } from "./conversations.ts";
import { toNewMessage } from "./message-views.ts";
import type { NonEmpty } from "./non-empty.ts";
import { sql } from "./sql.ts";

/** Each dialect has its own form in `hot/`: histories have millions of messages. */
export interface ImportedMessageWrites {
  /**
   * Inserts messages of a conversation's past, in this order. The counter goes up by one for each.
   * They count as read for everybody, their mentions too, and nobody's read position moves. A message
   * whose `client_msg_id` the sender has used in the conversation before, or earlier in the list, is
   * not inserted again. If nothing has happened in the conversation before, the latest of them decides
   * its `updated_at`; otherwise `updated_at` never goes back.
   */
  importMessages(
    conversation: ConversationRecord,
    messages: NonEmpty<ImportedMessage>,
  ): Awaitable<ImportResult[]>;
}

/** A message of a conversation's past. */
export interface ImportedMessage {
  sender: AccountRecord;
  content: string;
  client_msg_id: string;
  mentions: readonly string[];
  metadata?: JsonObject | undefined;
  at: number;
}

export interface ImportResult {
  readonly uuid: string;
  /** Null if the message had been stored before. */
  readonly inserted: Message | null;
}

/** A message that may have been imported before. */
export interface KnownMessage {
  readonly uuid: string;
  readonly sender_id: number;
  readonly client_msg_id: string;
}

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
  known: readonly KnownMessage[],
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

/** The `updated_at` of the counters after an import of these messages. */
export function importedAt(rows: readonly ImportedRow[]) {
  const latest = Math.max(...rows.map(({ message }) => message.at));
  return sql`CASE WHEN seq = 0 THEN ${latest}::bigint
    ELSE greatest(updated_at, ${latest}::bigint) END`;
}

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
