import type { ConversationChange } from "@parley/protocol";
import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";
import type { NonEmpty } from "./non-empty.ts";

/** What happened to a group itself: its members, admin, title, and the modes of its agents. */
export interface GroupChangeReads {
  /** Changes between two values of the group's counter, oldest first. */
  conversationChanges(query: ChangesQuery): Awaitable<ConversationChange[]>;
}

export interface GroupChangeWrites {
  /**
   * Stores what one call changed, increments the group's counter and returns its new value. All
   * changes of the call share that value. The group itself is changed by other methods.
   */
  changeGroup(conversationId: number, changes: NewChanges): Awaitable<number>;
}

export interface ChangesQuery {
  conversationId: number;
  /** Exclusive. */
  after: number;
  /** Exclusive. */
  before: number;
  /** Number of calls whose changes are returned: the latest ones. */
  limit: number;
}

/** What one call changed of a group. */
export interface NewChanges {
  actor: AccountRecord;
  changes: NonEmpty<NewChange>;
  at: number;
}

export interface NewChange {
  kind: ConversationChange["kind"];
  subjects?: readonly AccountRecord[];
  title?: string;
  always_on?: boolean;
}
