import type { Reaction } from "@parley/protocol";
import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";
import type { MessageRecord } from "./messages.ts";

export interface ReactionReads {
  /** The account's reaction with this emoji; null when there is none. */
  reaction(
    message: MessageRecord,
    reactor: AccountRecord,
    emoji: string,
  ): Awaitable<Reaction | null>;
  /** Reactions to a message, oldest first. */
  reactions(query: ReactionsQuery): Awaitable<PlacedReaction[]>;
  /** The different emoji of a message, and how many of its reactions are this account's. */
  reactionCounts(
    message: MessageRecord,
    accountId: number,
  ): Awaitable<{ emoji: readonly string[]; own: number }>;
  /** Reactions of an account to messages that are not deleted, oldest first. */
  reactionsBy(query: ReactionsByQuery): Awaitable<ReactionRecord[]>;
}

/** Each method increments the counter of the message's conversation and returns its new value. */
export interface ReactionWrites {
  /** Throws when the reactor has this reaction on the message already. */
  addReaction(message: MessageRecord, reaction: NewReaction): Awaitable<number>;
  /** Throws when there is no such reaction. */
  removeReaction(message: MessageRecord, reactorId: number, emoji: string): Awaitable<number>;
}

export interface ReactionsQuery {
  message: MessageRecord;
  /** Return only reactions with this emoji. */
  emoji: string | undefined;
  /** Return only reactions after this `place`. */
  after: number | undefined;
  limit: number;
}

export interface ReactionsByQuery {
  accountId: number;
  /** Return only reactions after this `place`. */
  after: number;
  limit: number;
}

export interface ReactionRecord {
  /** Position in the list of reactions, to continue from. */
  readonly place: number;
  /** The UUID of the message. */
  readonly message_id: string;
  /** The UUID of its conversation. */
  readonly conversation_id: string;
  readonly emoji: string;
  readonly created_at: number;
}

export interface PlacedReaction {
  /** Position in the list of reactions, to continue from. */
  place: number;
  reaction: Reaction;
}

export interface NewReaction {
  reactor: AccountRecord;
  emoji: string;
  at: number;
}
