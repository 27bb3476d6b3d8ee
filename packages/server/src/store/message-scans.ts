import type { Awaitable } from "./awaitable.ts";
import type { MessageRecord } from "./messages.ts";

/** Row ids of messages that one read examines. */
export const SCANNED_IDS = 5000;

/**
 * Finds messages of all conversations by their row ids, which grow with each new message. Callers read
 * one short range after another, so that no read takes long, however many messages there are.
 */
export interface MessageScanReads {
  /** The highest row id of a message; zero when there is none. */
  lastMessageId(): Awaitable<number>;
  /** The messages of the range that are not deleted and match, ordered by id. */
  scanMessages(range: MessageRange, filter: MessageFilter): Awaitable<MessageRecord[]>;
  /** When the oldest message of the range that is not deleted was created; null when there is none. */
  oldestMessageAt(range: MessageRange): Awaitable<number | null>;
}

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
