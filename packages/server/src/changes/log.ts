import type { Message } from "@parley/protocol";
import type { Change, LoggedChange } from "./change.ts";

type Awaitable<Value> = Value | Promise<Value>;

/** A position in the change log. Later entries have greater cursors. */
export type Cursor = number;

/** The durable changes of one transaction, in the order in which its units took effect. */
export interface LogEntry {
  readonly cursor: Cursor;
  /** The node that committed the transaction. */
  readonly node: string;
  readonly changes: readonly LoggedChange[];
}

/**
 * The durable changes of all nodes in commit order. Entries are written in the transaction that
 * made the changes: an entry exists exactly when its changes are visible. Old entries are pruned.
 */
export interface ChangeLog {
  /** The cursor of the newest entry that is safe to read: no entry before it can still appear. */
  head(): Promise<Cursor>;
  /**
   * Entries after a cursor in commit order, at most `limit`. An entry that commits late is never
   * skipped: entries after it are returned only once it has committed or rolled back. Null when an
   * entry after the cursor was pruned. Entries of `skippedNode` come without their changes: a node
   * that tails the log has delivered its own.
   */
  read(after: Cursor, limit: number, skippedNode?: string): Promise<readonly LogEntry[] | null>;
}

/** Named subscriptions keep their position in the change log across restarts and nodes. */
export interface SubscriptionWrites {
  /**
   * Leases the subscription to a node and returns its cursor; null while another node holds the
   * lease or is saving the cursor. A new subscription begins at `from`.
   */
  claimSubscription(
    name: string,
    node: string,
    leaseMs: number,
    from: Cursor,
  ): Awaitable<Cursor | null>;
  /**
   * Saves the cursor and renews the lease; `leaseMs` 0 releases it. False when another node has
   * taken over or the subscription was deleted.
   */
  saveSubscription(name: string, node: string, cursor: Cursor, leaseMs: number): Awaitable<boolean>;
  /** Begins a subscription at a position, or moves one that is behind it forward. The lease stays. */
  advanceSubscription(name: string, to: Cursor): Awaitable<void>;
  /** Does nothing if another node has taken over. */
  deleteSubscription(name: string, node: string): Awaitable<unknown>;
}

/** How the text of messages is read, which the log does not keep. */
export interface TextReads {
  messageViews(uuids: readonly string[], viewerId: number): Awaitable<Message[]>;
}

/** What the stream needs of a store. `Tx`: what its units of work may write. */
export interface ChangeStore<Tx extends SubscriptionWrites = SubscriptionWrites> {
  readonly changes: ChangeLog;
  read<Result>(unit: (tx: TextReads) => Awaitable<Result>): Promise<Result>;
  write<Result>(unit: (tx: Tx) => Awaitable<Result>): Promise<Result>;
  /** Runs a unit without waiting for the disk. */
  note<Result>(unit: (tx: Tx) => Awaitable<Result>): Promise<Result>;
  /** Calls the listener with committed changes. */
  onCommit(listener: (changes: readonly Change[]) => void): void;
}
