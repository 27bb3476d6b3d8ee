import type { Awaitable } from "./awaitable.ts";

/**
 * A restore from a backup takes data back that clients have seen. The id of the history changes then,
 * so that clients can tell and start over.
 */
export interface HistoryReads {
  historyId(): Awaitable<string>;
}

export interface HistoryWrites {
  /** Gives the history a new id, for restores that the store cannot detect. */
  renewHistory(): Awaitable<void>;
}
