import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";
import type { MessageRecord } from "./messages.ts";

export interface ComponentWrites {
  /**
   * Records that somebody used a component of a message: once for each person and component, and only
   * the latest 50 for each message. Increments the counter and returns its new value. While the
   * message streams, the counter stays and null is returned: uses are shown once it is finalized.
   */
  useComponent(message: MessageRecord, use: NewUse): Awaitable<number | null>;
}

export interface NewUse {
  token: string;
  by: AccountRecord;
  at: number;
}
