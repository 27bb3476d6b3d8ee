import type { File, Message, Turn } from "@parley/protocol";
import type { AccountRecord, JsonObject } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";
import type { ConversationRecord } from "./conversations.ts";
import type { NonEmpty } from "./non-empty.ts";

/** Messages are visible to a viewer unless they are deleted, or the viewer has hidden them. */
export interface MessageReads {
  /** The message, deleted or not. A write unit owns its conversation from then on. */
  message(uuid: string): Awaitable<MessageRecord | null>;
  /** The subset of these messages that the viewer can see, in the given order. */
  messageViews(uuids: readonly string[], viewerId: number): Awaitable<Message[]>;
  /** The uuid of the message that was sent with this `client_msg_id`, deleted or not. */
  sentBefore(
    conversationId: number,
    senderId: number,
    clientMsgId: string,
  ): Awaitable<string | null>;
  /** The uuids of an account's messages in a range that are not deleted, oldest first. */
  sentIn(query: SentQuery): Awaitable<string[]>;
  /** A page of messages that the viewer can see, oldest first. */
  messagePage(query: MessagePageQuery): Awaitable<{ items: Message[]; has_more: boolean }>;
  /**
   * Finalized messages that the viewer can see, newest first: those up to a position, and the agent's
   * later answers to messages before the one that it is about to answer.
   */
  contextMessages(query: ContextQuery): Awaitable<Message[]>;
}

export interface MessageWrites {
  /**
   * Inserts a message and increments the counter of its conversation. The message is unread for the
   * other members; its sender has read everything up to it. Returns null, and changes nothing, when the
   * sender has used the `client_msg_id` in the conversation before.
   */
  insertMessage(message: NewMessage): Awaitable<Message | null>;
  /**
   * Replaces the text and the mentions. Increments the counter and returns its new value. Throws for a
   * deleted message.
   */
  editMessage(
    message: MessageRecord,
    content: string,
    mentions: readonly string[],
    at: number,
  ): Awaitable<number>;
  /**
   * Replaces what a message shows of its files. Increments the counter and returns its new value.
   * Throws for a deleted message.
   */
  setMessageFiles(message: MessageRecord, files: readonly File[]): Awaitable<number>;
  /**
   * Turns messages into tombstones. Increments the counter once for all of them and returns its new
   * value. Throws when they are of several conversations, or one of them is deleted already.
   */
  deleteMessages(messages: NonEmpty<MessageRecord>, at: number): Awaitable<number>;
}

/** Messages of one sender in a range of a conversation's counter. */
export interface SentQuery {
  conversationId: number;
  senderId: number;
  /** Exclusive. */
  after: number;
  /** Inclusive. */
  upTo: number;
}

export interface MessageRecord {
  readonly id: number;
  readonly uuid: string;
  readonly conversation_id: number;
  readonly conversation_uuid: string;
  readonly seq: number;
  readonly sender_id: number;
  readonly sender_owner_id: number | null;
  readonly sender_kind: "human" | "agent";
  readonly mentions: readonly string[];
  readonly files: readonly File[];
  readonly finalized: boolean;
  readonly deleted: boolean;
  /** Imported messages count as read for everybody. */
  readonly imported: boolean;
}

export interface MessagePageQuery {
  conversationId: number;
  viewerId: number;
  /** Return messages beyond this position; without it, the latest. */
  from?: { seq: number; direction: "older" | "newer" } | undefined;
  limit: number;
}

export interface ContextQuery {
  conversationId: number;
  viewerId: number;
  /** Return messages up to this position. */
  upTo: number;
  /** Also return later answers of the agent, up to `upTo`, to messages before `toBefore`. */
  answers: { agentId: number; upTo: number; toBefore: number };
  /** Number of messages up to the position; later answers are not limited. */
  limit: number;
}

export interface NewMessage {
  conversation: ConversationRecord;
  sender: AccountRecord;
  content: string;
  client_msg_id: string | null;
  reply_to_id: string | null;
  mentions: readonly string[];
  files?: readonly File[];
  /** What a product stores with it. */
  metadata?: JsonObject | undefined;
  /** Set for the placeholder of an agent's answer, which is not finalized yet. */
  turn?: Turn;
  /** Set for the reply to a component action. */
  action?: NewAction;
  at: number;
}

/** The component action that a message replies to. */
export interface NewAction {
  token: string;
  label: string | null;
  by: AccountRecord;
}
