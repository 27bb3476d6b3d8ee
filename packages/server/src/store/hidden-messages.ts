import type { Awaitable } from "./awaitable.ts";
import type { MessageRecord } from "./messages.ts";

/** Messages that an account has deleted for itself alone. */
export interface HiddenMessageReads {
  isHidden(message: MessageRecord, accountId: number): Awaitable<boolean>;
  /**
   * A page of what an account hid after a value of its own counter. Without `since` the page is empty
   * and `seq` is the current value, to start from.
   */
  hiddenSince(accountId: number, since: number | undefined): Awaitable<Hidden>;
}

export interface HiddenMessageWrites {
  /**
   * Hides messages from one account. Conversations' counters stay; the account's own is incremented
   * once for all of them and returned. Returns null, and changes nothing, when all of them are hidden
   * already, or there are none.
   */
  hideMessages(messages: readonly MessageRecord[], accountId: number): Awaitable<number | null>;
}

/** A page of hidden messages. The next page starts after `seq`. */
export interface Hidden {
  hidden: { conversation_id: string; ids: string[] }[];
  seq: number;
  has_more: boolean;
}
