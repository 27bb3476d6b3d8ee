import type { BlockList } from "@parley/protocol";
import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

/** Which people an account has blocked. */
export interface BlockReads {
  /** All that the account has blocked, ordered by username, with its own counter at that moment. */
  blockList(accountId: number): Awaitable<BlockList>;
  /** A page of those that the account has blocked, ordered by username. */
  blockedAccounts(query: BlockQuery): Awaitable<AccountRecord[]>;
  /** The subset of these accounts that have blocked one of the others, in no particular order. */
  blockersAmong(accountIds: readonly number[], otherIds: readonly number[]): Awaitable<number[]>;
}

export interface BlockWrites {
  /**
   * Blocks a person. Increments the account's own counter and returns its new value. Returns null, and
   * changes nothing, when the person is blocked already.
   */
  block(accountId: number, blockedId: number, at: number): Awaitable<number | null>;
  /**
   * Ends a block. Increments the account's own counter and returns its new value. Returns null, and
   * changes nothing, when the person is not blocked.
   */
  unblock(accountId: number, blockedId: number): Awaitable<number | null>;
}

export interface BlockQuery {
  accountId: number;
  /** Return only usernames after this one. */
  after?: string | undefined;
  limit: number;
}
