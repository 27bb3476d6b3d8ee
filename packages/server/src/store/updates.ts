import type { ConversationChange, Message } from "@parley/protocol";
import type { Awaitable } from "./awaitable.ts";

export interface UpdateReads {
  /**
   * A page of what has changed in a conversation since a value of its counter. A page never ends
   * between changes that share a counter value, so it may exceed the limit.
   */
  updates(query: UpdatesQuery): Awaitable<Updates>;
}

export interface UpdatesQuery {
  conversationId: number;
  viewerId: number;
  since: number;
  limit: number;
}

/** The next page starts after `seq`. */
export interface Updates {
  /** New and changed messages by their latest change; on the last page also those that stream. */
  messages: Message[];
  /** Messages that were deleted, or that the viewer has hidden. */
  deleted_ids: string[];
  changes: ConversationChange[];
  seq: number;
  has_more: boolean;
}
