import type { SharedConversation } from "@parley/protocol";
import type { Change, EventChange } from "../changes/change.ts";

/** What a node delivers: a change, or that this node has lost some of a conversation's events. */
export type Delivered = Change | { kind: "events_lost"; conversation: string };

/** A conversation and its counter, as the store had them at some moment. */
export interface Counter {
  readonly uuid: string;
  readonly seq: number;
}

/** What a node hears for the sake of one person who has clients here. */
export interface Interest {
  /**
   * Hears these conversations, and the person's own events, from when it resolves. True when that
   * may not have been so before: then what was read until now may be out of date, and is to be read
   * again.
   */
  follow(conversations: readonly Counter[]): Promise<boolean>;
  /** Events beyond these values are delivered from now on. They were read after `follow`. */
  begin(conversations: readonly Counter[]): void;
  /** The person takes part from this counter value on. */
  join(conversation: string, seq: number): void;
  leave(conversation: string): void;
  has(conversation: string): boolean;
  /** The last client has gone. */
  end(): void;
}

/**
 * Carries changes to every node that has somebody to deliver them to, this one included.
 *
 * - Counted events of a conversation are delivered once, in the order of the counter and without
 *   gaps, whichever nodes they come from; what is missing is read from the store's log.
 * - Everything else is best effort: it is lost while nodes cannot reach each other.
 * - A node delivers its own changes even then.
 */
export interface Bus {
  publish(change: Change): void;
  /** Set once, before the first change. */
  onChange(listener: (change: Delivered) => void): void;
  interest(username: string): Interest;
  /** Rejects when other nodes cannot be reached. */
  ready(): Promise<void>;
  close(): Promise<void>;
}

/** What nodes say to each other besides changes. */
export interface Channel {
  /** This node's id. */
  readonly node: string;
  broadcast(body: unknown): void;
  send(node: string, body: unknown): void;
  onMessage(listener: (body: unknown) => void): void;
  /** Called whenever the others can be reached again, and when they first can be. */
  onUp(listener: () => void): void;
  /** Whether the others may not have heard all that this node has said since it started. */
  hasUnsaid(): boolean;
}

/** For what was missed. */
export interface CatchUp {
  /** The store has the conversation at this value: whatever is missing up to it is delivered. */
  behind(conversation: string, seq: number): void;
  /** Somebody here took part at this value, and was not told. */
  rejoin(conversation: string, username: string, seq: number): void;
}

/** For what was missed and no counter counts. */
export interface Repeats {
  /**
   * Delivers here, and only here, changes that no counter counts, unless all of them were. False
   * when the store no longer has them all.
   */
  repeat(read: () => Promise<readonly EventChange[] | null>): Promise<boolean>;
}

/** A seat is an account's place in a conversation. */
export interface ChangedSeat {
  account_id: number;
  conversation: string;
  seq: number;
  /** The account has left since. */
  left?: boolean | undefined;
}

/** What the store tells a node that may have missed something. */
export interface EventLog {
  /** The counted events of a conversation after a counter value, in order; null when some are no longer kept. */
  eventsSince(conversation: string, seq: number): Promise<readonly Change[] | null>;
  /** Seats of these accounts whose conversation changed since then, with its counter. */
  changedSince(accountIds: readonly number[], since: number): Promise<readonly ChangedSeat[]>;
  /** Conversations whose counter went up since then, with its value, as far as the log has them. */
  changedConversations(since: number): Promise<readonly Counter[]>;
  /**
   * Changes since then that no counter counts, such as how far somebody has read, in order; null when
   * there are too many or they are no longer kept.
   */
  uncountedSince(since: number): Promise<readonly Change[] | null>;
  /** Which of these sessions have ended. */
  endedSessions(ids: readonly string[]): Promise<readonly string[]>;
  /** The text of a message, as far as it has streamed; null when there is no such message. */
  messageText(message: string): Promise<string | null>;
  /** What a new member is told. */
  sharedConversation(conversation: string): Promise<SharedConversation | null>;
}
