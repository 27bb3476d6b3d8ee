import type { Message } from "@parley/protocol";
import type { AccountRecord, JsonObject } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";
import type { ConversationRecord } from "./conversations.ts";
import type { NonEmpty } from "./non-empty.ts";

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
