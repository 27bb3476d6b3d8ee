import type { Conversation, ConversationDetail, SharedConversation } from "@parley/protocol";
import type { AccountRecord, JsonObject } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

/**
 * Conversations and their members. Methods that take a `conversationId` expect the id of an existing
 * conversation, such as `conversation` returns it; views of one that does not exist throw.
 */
export interface ConversationReads {
  /**
   * The conversation, and whether the viewer is a member of it. A write unit owns the conversation from
   * then on.
   */
  conversation(uuid: string, viewerId: number): Awaitable<ConversationRecord | null>;
  /**
   * The id of the direct conversation of two accounts, of several the one that was inserted last. The
   * order of the two does not matter.
   */
  directConversation(pair: readonly [number, number]): Awaitable<number | null>;
  /** The conversations that a product knows by one of these ids, in no particular order. */
  chatsByExternalId(ids: readonly string[]): Awaitable<{ external_id: string; uuid: string }[]>;
  /** All members, in the order in which they joined. */
  members(conversationId: number): Awaitable<MemberRecord[]>;
  /** How far people have read, by username, for the first members: those that lists show. */
  readPositions(conversationId: number): Awaitable<Record<string, number>>;
  /** The subset of these usernames that are members, in the given order. */
  participantsAmong(conversationId: number, usernames: readonly string[]): Awaitable<string[]>;
  /** The conversations that an account is a member of, with their counters. */
  counters(accountId: number): Awaitable<{ uuid: string; seq: number }[]>;
  /** The conversations that an account is a former member of, with their counters. */
  formerConversations(accountId: number): Awaitable<{ id: number; seq: number }[]>;
  /** The conversation as lists show it to the viewer, who is a member. */
  conversationView(conversationId: number, viewerId: number): Awaitable<Conversation>;
  /** The same with all participants, and how far each person has read. */
  conversationDetail(conversationId: number, viewerId: number): Awaitable<ConversationDetail>;
  /** The conversation without anything that differs between viewers, for events. */
  sharedConversation(conversationId: number): Awaitable<SharedConversation>;
  /** The viewer's conversations, most recently updated first. */
  chats(query: ChatsQuery): Awaitable<Conversation[]>;
  /** How many messages a member has not read. Zero for an account that is not a member. */
  unreadCount(conversationId: number, accountId: number): Awaitable<number>;
}

/** The counter stays as it is: `changeGroup` counts what happens to a group. */
export interface ConversationWrites {
  /**
   * Inserts a conversation without members and returns its id. The creator of a group is its admin.
   * The uuid must be new, and so must the external id, and the pair of a direct conversation unless it
   * was released.
   */
  insertConversation(conversation: NewConversation): Awaitable<number>;
  /**
   * Makes `directConversation` not find this conversation any more, so that another one of the same
   * pair can be inserted. The unit must have locked one of the two accounts before it called
   * `directConversation`: otherwise units that do so at the same time conflict.
   */
  releasePair(conversationId: number): Awaitable<void>;
  /** Adds members in this order; they have read everything so far. None of them may be a member yet. */
  insertMembers(conversationId: number, accountIds: readonly number[], at: number): Awaitable<void>;
  /** Makes the members among these accounts former members, until they are inserted again. */
  deleteMembers(conversationId: number, accountIds: readonly number[]): Awaitable<void>;
  /** Sets the admin of a group; null if it has none any more. */
  setAdmin(conversationId: number, accountId: number | null): Awaitable<void>;
  /** Replaces what the product stores with the conversation. */
  setChatMetadata(conversationId: number, metadata: JsonObject): Awaitable<void>;
  setTitle(conversationId: number, title: string): Awaitable<void>;
  /** Marks a conversation as one that nobody can write to. */
  closeConversation(conversationId: number, at: number): Awaitable<void>;
  /**
   * Moves a member's read position forward. Returns false, and changes nothing, when it is at `seq`
   * or beyond, and for an account that is not a member.
   */
  markRead(conversationId: number, accountId: number, seq: number): Awaitable<boolean>;
}

export interface ConversationRecord {
  readonly id: number;
  readonly uuid: string;
  readonly kind: "direct" | "group";
  readonly title: string | null;
  readonly admin_id: number | null;
  /** Set once nobody can write to it any more. */
  readonly closed_at: number | null;
  /** The file of its picture. */
  readonly picture_id: string | null;
  readonly seq: number;
  readonly participant_count: number;
  readonly agent_count: number;
  /** Whether the viewer is a member. */
  readonly joined: boolean;
  /** In a direct conversation: whether the viewer blocked the other person, or was blocked by them. */
  readonly block: "own" | "theirs" | null;
}

export interface MemberRecord {
  readonly account: AccountRecord;
  readonly always_on: boolean;
  readonly last_read_seq: number;
}

export interface ChatsQuery {
  viewerId: number;
  /** Return only conversations after this position of the list. */
  after?: { updated_at: number; id: number } | undefined;
  limit: number;
}

export interface NewConversation {
  uuid: string;
  kind: "direct" | "group";
  title: string | null;
  created_by: number;
  /** The two accounts of a direct conversation. */
  direct?: readonly [number, number];
  /** Only for groups of a product. */
  external_id?: string;
  metadata?: JsonObject;
  at: number;
}
