import type { Change, LoggedChange, Membership } from "./change.ts";

/** What a node delivers to its subscribers. */
export type Delivered =
  | Change
  /** Events were lost and clients have a gap: in one conversation, or in any if none is named. */
  | { kind: "events_lost"; conversation?: string }
  /** Accounts left a conversation by an event that is not delivered. */
  | { kind: "leaving_missed"; leaves: Membership }
  /** An external agent has opened a socket on this node. */
  | { kind: "agent_connected"; username: string };

/** A conversation and its counter, as the store had them at some moment. */
export interface Counter {
  readonly uuid: string;
  readonly seq: number;
}

/** The conversations whose events this node receives for one person who has clients here. */
export interface Interest {
  /**
   * Subscribes to the events of these conversations and to the person's own; resolves once the
   * subscriptions are active. True if they were not active before: what the caller has read until
   * then may be outdated.
   */
  follow(conversations: readonly Counter[]): Promise<boolean>;
  /** Delivers events beyond these counters, which were read after `follow`. */
  begin(conversations: readonly Counter[]): void;
  /** The person participates from this counter value on. */
  join(conversation: string, seq: number): void;
  leave(conversation: string): void;
  has(conversation: string): boolean;
  /** The person's last client has gone. */
  end(): void;
}

/**
 * Carries changes to every node that has somebody to deliver them to, this one included.
 *
 * - Counted events of a conversation are delivered once, in the order of the counter and without
 *   gaps, whichever nodes they come from. What is missing is read from the change log.
 * - Other durable changes are delivered at least once, late ones out of order.
 * - Transient events are lost while nodes cannot reach each other.
 * - A node delivers its own changes even then.
 */
export interface Bus {
  publish(change: Change): void;
  /** Set once, before the first change. */
  onChange(listener: (change: Delivered) => void): void;
  interest(username: string): Interest;
  /** Whether a change in the log has somebody to deliver it to here and was not delivered. */
  isMissing(change: LoggedChange): boolean;
  /** Delivers a change of the log that was missing. */
  replay(change: Change): Promise<void> | void;
  /** Reports that changes were pruned from the log before this node read them. */
  lose(): void;
  /** Delivers what is stored of streaming messages, while other nodes cannot be reached. */
  readStreams?(): void;
  /** Sets the function that the bus calls when this node should read the log at once. */
  onGap(readLog: () => Promise<void>): void;
  /** Rejects when other nodes cannot be reached. */
  ready(): Promise<void>;
  close(): Promise<void>;
}

/** Messages between nodes besides changes. */
export interface Channel {
  /** This node's id. */
  readonly node: string;
  broadcast(body: unknown): void;
  send(node: string, body: unknown): void;
  onMessage(listener: (body: unknown) => void): void;
  /** Called when the other nodes can be reached, the first time and after each interruption. */
  onUp(listener: () => void): void;
}
