import type {
  Account,
  AgentLimits,
  Conversation,
  ConversationChange,
  ConversationDetail,
  Message,
  Reaction,
  Session,
  SharedConversation,
  Turn,
  UsageRow,
} from "@parley/protocol";
import type { Announcement } from "../changes/change.ts";
import type { AccountRecord } from "../domain/accounts.ts";
import { Failure } from "../rules/failure.ts";

/**
 * Where everything durable lives. One interface, one contract suite, several backends.
 *
 * Guarantees every backend gives:
 * - A unit of work is atomic: all of its changes are kept, or, if it throws, none.
 * - Units that touch one conversation take effect one after another: its counter has no gaps.
 * - `write` resolves, and the unit's announcements are handed to `onCommit`, only once the
 *   changes are safely on disk; announcements come in the order in which the units took effect.
 * - `read` sees every unit whose `write` has resolved, and returns nothing that a crash could undo.
 * - A unit may run again from its start after a conflict, and may be run inside one transaction
 *   with others: it awaits nothing but its own `tx` and has no effect outside it.
 */
export interface Store {
  read<Result>(unit: (tx: ReadTx) => Awaitable<Result>): Promise<Result>;
  write<Result>(unit: (tx: WriteTx) => Awaitable<Result>): Promise<Result>;
  /**
   * A unit that does not wait for the disk of this machine: for what passes by and is stored only in
   * case. What it did survives the end of this process, and whatever befalls a store elsewhere.
   */
  note<Result>(unit: (tx: WriteTx) => Awaitable<Result>): Promise<Result>;
  /** Messages the viewer can see whose text matches, newest first. */
  search(query: SearchQuery): Promise<SearchHit[]>;
  /** Hands over what was committed, to a listener that does not throw. Set once, before the first write. */
  onCommit(listener: (announcements: readonly Announcement[]) => void): void;
  /**
   * Which of these sessions have ended. Finds those that another process has ended; those that this
   * one has ended were announced, and may be left out.
   */
  endedSessions(ids: readonly string[]): Promise<readonly string[]>;
  /** Rejects when the store cannot be reached. */
  ready(): Promise<void>;
  close(): Promise<void>;
}

/** What a store throws when it cannot be reached, or cannot say whether a change was made. */
export class Unavailable extends Failure {
  override name = "Unavailable";
  constructor(why: string) {
    super("unavailable", `unavailable: ${why}`, { retry_after: 1 });
  }
}

/** What a store that several nodes share offers besides, so that each of them misses nothing. */
export interface SharedStore extends Store {
  /** Tells installations apart that share other services. */
  readonly installation: string;
  /** The counted events of a conversation after a counter value, in order; null when some are no longer kept. */
  eventsSince(conversation: string, seq: number): Promise<readonly Announcement[] | null>;
  /** Seats of these accounts whose conversation has changed since then, or that they left. */
  changedSince(accountIds: readonly number[], since: number): Promise<readonly ChangedSeat[]>;
  /** Conversations whose counter went up since then, with its value, as far as the log has them. */
  changedConversations(since: number): Promise<readonly { uuid: string; seq: number }[]>;
  /**
   * Changes since then that no counter counts, such as how far somebody has read, in order; null when
   * there are too many or they are no longer kept.
   */
  uncountedSince(since: number): Promise<readonly Announcement[] | null>;
  /** The text of a message, as far as it has streamed; null when there is no such message. */
  messageText(message: string): Promise<string | null>;
  /** What a new member is told of a conversation. */
  sharedConversation(conversation: string): Promise<SharedConversation | null>;
}

/** An account's place in a conversation, with the conversation's counter. */
export interface ChangedSeat {
  account_id: number;
  conversation: string;
  seq: number;
  /** Whether the account has left. */
  left: boolean;
}

/** What a backend may answer at once or later: callers always await. */
export type Awaitable<Value> = Value | Promise<Value>;

export type { AccountRecord };

export interface SessionRecord {
  readonly id: string;
  readonly account: AccountRecord;
  readonly created_at: number;
  readonly last_used_at: number;
  readonly expires_at: number;
  /** Set when it was signed out or revoked. */
  readonly ended_at: number | null;
}

export interface ConversationRecord {
  readonly id: number;
  readonly uuid: string;
  readonly kind: "direct" | "group";
  readonly title: string | null;
  readonly admin_id: number | null;
  readonly seq: number;
  readonly participant_count: number;
  readonly agent_count: number;
  /** Whether the account it was asked for takes part. */
  readonly joined: boolean;
}

export interface MemberRecord {
  readonly account: AccountRecord;
  readonly always_on: boolean;
  readonly last_read_seq: number;
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
  readonly finalized: boolean;
  readonly deleted: boolean;
}

export interface ReadTx {
  /** Names the history that the data belongs to: another one after every restore from a backup. */
  historyId(): Awaitable<string>;

  account(username: string): Awaitable<AccountRecord | null>;
  accounts(usernames: readonly string[]): Awaitable<AccountRecord[]>;
  /** For sign-in: the account with its password hash (null for agents and OIDC accounts). */
  credentials(
    username: string,
  ): Awaitable<{ account: AccountRecord; password_hash: string | null } | null>;
  /** The account of somebody whom an OIDC issuer vouches for. */
  identity(issuer: string, subject: string): Awaitable<AccountRecord | null>;
  /**
   * The person of that name if they have neither a password nor an identity: earlier versions knew
   * those whom an issuer vouched for by their names alone.
   */
  unlinkedAccount(username: string): Awaitable<AccountRecord | null>;
  /** Humans, and agents owned by the viewer, by username. */
  listAccounts(query: AccountQuery): Awaitable<AccountRecord[]>;
  /**
   * Those of them whose username, or display name from one of its words on, begins with the query,
   * case and accents aside; by the name that matched, so that the whole word comes first.
   */
  findAccounts(query: FindQuery): Awaitable<FoundAccount[]>;

  /**
   * Accounts with a version above `since` that the viewer meets: the viewer, the viewer's agents, and
   * whoever shares a conversation with the viewer. Without `since` only where to go on from.
   */
  renamedSince(viewerId: number, since: number | undefined): Awaitable<Renamed>;

  session(tokenHash: string): Awaitable<SessionRecord | null>;
  /** Whether there is a session of the account, ended or not, that was opened from this network. */
  signedInFrom(accountId: number, network: string): Awaitable<boolean>;
  /** Sessions that still work, the most recently used first. */
  sessions(accountId: number, now: number): Awaitable<Omit<Session, "current">[]>;

  conversation(uuid: string, viewerId: number): Awaitable<ConversationRecord | null>;
  /** The id of the direct conversation of two accounts. */
  directConversation(pair: readonly [number, number]): Awaitable<number | null>;
  /** In the order in which they joined. */
  members(conversationId: number): Awaitable<MemberRecord[]>;
  /** How far the people among the participants that lists show have read, by username. */
  readPositions(conversationId: number): Awaitable<Record<string, number>>;
  /** Which of these usernames take part. */
  participantsAmong(conversationId: number, usernames: readonly string[]): Awaitable<string[]>;
  /** The conversations an account takes part in, with their counters. */
  counters(accountId: number): Awaitable<{ uuid: string; seq: number }[]>;
  conversationView(conversationId: number, viewerId: number): Awaitable<Conversation>;
  conversationDetail(conversationId: number, viewerId: number): Awaitable<ConversationDetail>;
  sharedConversation(conversationId: number): Awaitable<SharedConversation>;
  chats(query: ChatsQuery): Awaitable<Conversation[]>;
  unreadCount(conversationId: number, accountId: number): Awaitable<number>;
  /** Changes of the group itself between two values of its counter, oldest first. */
  conversationChanges(query: ChangesQuery): Awaitable<ConversationChange[]>;

  message(uuid: string): Awaitable<MessageRecord | null>;
  /** The messages of these ids that the viewer can see, in the order asked for. */
  messageViews(uuids: readonly string[], viewerId: number): Awaitable<Message[]>;
  /** What an earlier send with the same `client_msg_id` made, deleted or not. */
  sentBefore(
    conversationId: number,
    senderId: number,
    clientMsgId: string,
  ): Awaitable<string | null>;
  history(query: HistoryQuery): Awaitable<{ items: Message[]; has_more: boolean }>;
  updates(query: UpdatesQuery): Awaitable<Updates>;
  /** What an account hid after a value of its own counter. Without `since` only where to go on from. */
  hiddenSince(accountId: number, since: number | undefined): Awaitable<Hidden>;
  isHidden(message: MessageRecord, accountId: number): Awaitable<boolean>;
  /** The agents of an owner, by provider. */
  agents(ownerId: number): Awaitable<AgentRecord[]>;
  agent(accountId: number): Awaitable<AgentRecord | null>;
  /** A conversation's agents, for deciding which of them answer. */
  conversationAgents(conversationId: number): Awaitable<AgentSeat[]>;
  /** Every sealed key, for sealing it anew. */
  sealedKeys(): Awaitable<SealedKey[]>;
  turn(id: number): Awaitable<TurnRecord | null>;
  turnOfMessage(message: MessageRecord): Awaitable<TurnRecord | null>;
  /** Turns of a conversation that wait or run, oldest first. */
  openTurns(conversationId: number): Awaitable<TurnRecord[]>;
  /** What a streaming message has so far. */
  streamed(messageId: number): Awaitable<string>;
  /**
   * Finalized messages that an agent's owner can see, the newest first: those up to a place, and
   * the agent's later answers to messages before the one that it is about to answer.
   */
  contextMessages(query: ContextQuery): Awaitable<Message[]>;
  spending(agentId: number, conversationId: number, now: number): Awaitable<Spending>;
  usage(ownerId: number, since: number | null, until: number | null): Awaitable<UsageRow[]>;
  /** How many different emoji a message has, and how many reactions are this account's. */
  reactionCounts(
    message: MessageRecord,
    accountId: number,
  ): Awaitable<{ emoji: readonly string[]; own: number }>;
  reaction(
    message: MessageRecord,
    reactor: AccountRecord,
    emoji: string,
  ): Awaitable<Reaction | null>;
  /** Reactions to a message, the oldest first. */
  reactions(query: ReactionsQuery): Awaitable<PlacedReaction[]>;
}

export interface WriteTx extends ReadTx {
  /** Announces a change of this unit, once it is on disk. */
  emit(announcement: Announcement): void;

  /** Begins another history, for restores that the store cannot notice by itself. */
  renewHistory(): Awaitable<void>;

  /** Null when the username is taken. */
  insertAccount(account: NewAccount): Awaitable<AccountRecord | null>;
  /** False when the identity has an account already. */
  insertIdentity(identity: NewIdentity): Awaitable<boolean>;
  /** Takes the counter of names one up and returns it: the account's new version. */
  setDisplayName(accountId: number, displayName: string): Awaitable<number>;
  setPassword(accountId: number, passwordHash: string): Awaitable<void>;

  insertSession(session: NewSession): Awaitable<void>;
  touchSession(id: string, lastUsedAt: number, expiresAt: number): Awaitable<void>;
  /** False when the account has no such session. */
  endSession(id: string, accountId: number, at: number): Awaitable<boolean>;
  /** Deletes at most so many sessions that expired before then, and returns how many. */
  purgeSessions(before: number, most: number): Awaitable<number>;

  /** Returns its id. */
  insertConversation(conversation: NewConversation): Awaitable<number>;
  insertMembers(conversationId: number, accountIds: readonly number[], at: number): Awaitable<void>;
  deleteMembers(conversationId: number, accountIds: readonly number[]): Awaitable<void>;
  setAdmin(conversationId: number, accountId: number | null): Awaitable<void>;
  setTitle(conversationId: number, title: string): Awaitable<void>;
  /** Stores what one call changed of the group itself; takes the counter one up and returns its new value. */
  changeGroup(conversationId: number, changes: NewChanges): Awaitable<number>;
  /** Moves a member's place forward; false when it was there or further already. */
  markRead(conversationId: number, accountId: number, seq: number): Awaitable<boolean>;

  /**
   * Takes the counter one up, counts the message as unread for the others and read for its sender.
   * Null, and nothing is changed, when the sender has used its `client_msg_id` there before.
   */
  insertMessage(message: NewMessage): Awaitable<Message | null>;
  /** Each of these takes the counter one up and returns its new value. */
  editMessage(
    message: MessageRecord,
    content: string,
    mentions: readonly string[],
    at: number,
  ): Awaitable<number>;
  deleteMessages(messages: readonly MessageRecord[], at: number): Awaitable<number>;
  addReaction(message: MessageRecord, reaction: NewReaction): Awaitable<number>;
  removeReaction(message: MessageRecord, reactorId: number, emoji: string): Awaitable<number>;
  /**
   * Records that somebody used a component of a message, once for each person and component, the
   * latest 50. Takes the counter one up and returns its new value, unless the message still streams:
   * its uses are shown once it is final, and this returns null.
   */
  useComponent(message: MessageRecord, use: NewUse): Awaitable<number | null>;
  setAgentKey(key: NewKey): Awaitable<void>;
  /** Replaces a key's sealing, unless the key was changed meanwhile. */
  resealKey(key: SealedKey, sealed: string): Awaitable<void>;
  removeAgentKey(ownerId: number, provider: string): Awaitable<void>;
  setAgentProfile(
    accountId: number,
    profile: { model: string | null; instructions: string | null },
  ): Awaitable<void>;
  setAgentLimits(accountId: number, limits: AgentLimits): Awaitable<void>;
  setAlwaysOn(conversationId: number, accountId: number, alwaysOn: boolean): Awaitable<void>;

  /**
   * Records that an agent is to answer. Once `most_waiting` turns of the agent wait in the
   * conversation, the last of them that is open-ended, and refused alike, takes the new trigger.
   */
  queueTurn(turn: NewTurn): Awaitable<void>;
  /** Drops turns that wait. */
  dropTurns(ids: readonly number[]): Awaitable<void>;
  /**
   * Takes waiting turns for a node: one at a time for each agent and conversation. There are more
   * when not all could be taken at once.
   */
  claimTurns(
    node: string,
    leaseMs: number,
    most: number,
  ): Awaitable<{ turns: TurnRecord[]; more: boolean }>;
  /** Running turns whose node is gone: their lease ran out, or it can only have been before a crash. */
  abandonedTurns(node: string): Awaitable<TurnRecord[]>;
  /** Takes over an abandoned turn that has streamed nothing, to begin it again. */
  adoptTurn(id: number, node: string, leaseMs: number): Awaitable<void>;
  /** Of those of these turns that the node has. */
  renewLeases(node: string, ids: readonly number[], leaseMs: number): Awaitable<void>;
  /** Gives a claimed turn its message, the model and the time it began. */
  beginTurn(id: number, begun: { messageUuid: string; model: string; at: number }): Awaitable<void>;
  /** Notes what a running turn is about to send and may spend at the most. */
  reserveTurn(turn: TurnRecord, reservation: Reservation): Awaitable<void>;
  noteTries(id: number, tries: number): Awaitable<void>;
  /**
   * Adds what was streamed to the messages of turns that this node runs. Returns those that it does
   * not run any more, or of which something that came before is lost: nothing is kept of them.
   */
  appendChunks(node: string, chunks: readonly NewChunk[]): Awaitable<number[]>;
  /** Finalizes a running turn's message, frees what it had reserved, and takes the counter one up. */
  finishTurn(turn: TurnRecord, finished: FinishedTurn): Awaitable<number>;
  /**
   * Private to one account: the conversation's counter stays, the account's own goes one up. Returns
   * its new value; null, and nothing is changed, when all of them were hidden before.
   */
  hideMessages(messages: readonly MessageRecord[], accountId: number): Awaitable<number | null>;
}

export interface AgentRecord {
  readonly account: AccountRecord;
  readonly owner: AccountRecord;
  readonly model: string | null;
  readonly instructions: string | null;
  readonly limits: AgentLimits;
  readonly sealed_key: string | null;
  readonly key_tail: string | null;
}

export interface AgentSeat {
  readonly account: AccountRecord;
  readonly always_on: boolean;
  readonly spenders: AgentLimits["spenders"];
  readonly waiting_turns: number;
}

export interface SealedKey {
  readonly owner_id: number;
  readonly provider: string;
  readonly sealed: string;
}

export interface TurnRecord {
  readonly id: number;
  readonly agent: AccountRecord;
  readonly conversation_id: number;
  readonly conversation_uuid: string;
  readonly trigger_uuid: string;
  readonly trigger_seq: number;
  readonly trigger_sender_id: number;
  readonly trigger_deleted: boolean;
  /** Answers whatever has been said when it begins; one that is not answers its trigger again. */
  readonly open_ended: boolean;
  /** Whether it took the place of earlier triggers, which it answers too. */
  readonly folded: boolean;
  readonly refusal: string | null;
  readonly status: "waiting" | "running" | FinishedTurn["status"];
  /** Which node runs it. */
  readonly node: string | null;
  /** Row and id of its message; null while it waits for the first time. */
  readonly message_id: number | null;
  readonly message_uuid: string | null;
  readonly model: string;
  readonly error: Turn["error"];
  readonly context_ids: readonly string[];
  readonly reserved: number;
  /** What it is taken to have sent, unless the provider says better. */
  readonly estimated_input: number;
  readonly tries: number;
  readonly started_at: number | null;
  readonly first_token_at: number | null;
  readonly finished_at: number | null;
  readonly usage: Turn["usage"];
}

/** What an agent has used or reserved: today in all, today in the conversation, and turns in the last minute. */
export interface Spending {
  today: number;
  todayHere: number;
  turnsInMinute: number;
}

export interface NewKey extends SealedKey {
  readonly tail: string;
  readonly at: number;
}

export interface NewTurn {
  agent_id: number;
  conversation_id: number;
  trigger_uuid: string;
  open_ended: boolean;
  refusal: string | null;
  most_waiting: number;
  at: number;
}

export interface FinishedTurn {
  status: "complete" | "stopped" | "failed";
  content: string;
  mentions: readonly string[];
  error: Turn["error"];
  usage: Turn["usage"];
  at: number;
}

export interface NewChunk {
  turn_id: number;
  text: string;
  /** Bytes of the message after it. */
  offset: number;
  first: boolean;
  at: number;
}

export interface Reservation {
  input_tokens: number;
  output_tokens: number;
  context_ids: readonly string[];
}

export interface ContextQuery {
  conversationId: number;
  viewerId: number;
  /** Messages up to this place. */
  upTo: number;
  /** Answers that come later, up to this place, to messages before that one. */
  answers: { agentId: number; upTo: number; toBefore: number };
  limit: number;
}

export interface FindQuery {
  viewerId: number;
  query: string;
  /** The place in the list to go on after. */
  after?: { name: string; username: string } | undefined;
  limit: number;
}

export interface FoundAccount extends AccountRecord {
  /** The name that matched, without case and accents. */
  name: string;
}

export interface AccountQuery {
  viewerId: number;
  usernames?: readonly string[] | undefined;
  after?: string | undefined;
  limit: number;
}

export interface ChatsQuery {
  viewerId: number;
  /** The place in the list to go on after. */
  after?: { updated_at: number; id: number } | undefined;
  limit: number;
}

export interface HistoryQuery {
  conversationId: number;
  viewerId: number;
  /** Messages beyond this place; the latest when there is none. */
  from?: { seq: number; direction: "older" | "newer" } | undefined;
  limit: number;
}

export interface ChangesQuery {
  conversationId: number;
  /** Both exclusive. */
  after: number;
  before: number;
  /** Of at most so many calls, the latest. */
  limit: number;
}

export interface UpdatesQuery {
  conversationId: number;
  viewerId: number;
  since: number;
  limit: number;
}

export interface Updates {
  messages: Message[];
  deleted_ids: string[];
  changes: ConversationChange[];
  seq: number;
  has_more: boolean;
}

/** A page of new names; `seq` is where the next one begins. */
export interface Renamed {
  accounts: Account[];
  seq: number;
  has_more: boolean;
}

/** A page of hidden messages; `seq` is where the next one begins. */
export interface Hidden {
  hidden: { conversation_id: string; ids: string[] }[];
  seq: number;
  has_more: boolean;
}

export interface SearchQuery {
  /** Words that must all occur; the last may be the beginning of one. */
  words: readonly string[];
  viewerId: number;
  conversationId?: number | undefined;
  /** Only hits older than this one (the `position` of the last hit seen). */
  before?: number | undefined;
  limit: number;
}

export interface SearchHit {
  uuid: string;
  /** Where it stands in the order of results. */
  position: number;
}

export interface NewAccount {
  username: string;
  kind: "human" | "agent";
  display_name: string;
  password_hash?: string;
  owner_id?: number;
  provider?: string;
  at: number;
}

export interface NewIdentity {
  issuer: string;
  subject: string;
  account_id: number;
  at: number;
}

export interface NewSession {
  id: string;
  token_hash: string;
  account_id: number;
  user_agent: string | null;
  /** Fingerprint of the network it was opened from. */
  network?: string;
  at: number;
  expires_at: number;
}

export interface NewConversation {
  uuid: string;
  kind: "direct" | "group";
  title: string | null;
  created_by: number;
  /** The two of a direct conversation: there is one for each pair. */
  direct?: readonly [number, number];
  at: number;
}

/** What one call changed of a group. */
export interface NewChanges {
  actor: AccountRecord;
  changes: readonly NewChange[];
  at: number;
}

export interface NewChange {
  kind: ConversationChange["kind"];
  subjects?: readonly AccountRecord[];
  title?: string;
  always_on?: boolean;
}

export interface NewMessage {
  conversation: ConversationRecord;
  sender: AccountRecord;
  content: string;
  client_msg_id: string | null;
  reply_to_id: string | null;
  mentions: readonly string[];
  /** Set for an agent's placeholder, which is not final yet. */
  turn?: Turn;
  /** Set for the reply to a component action. */
  action?: NewAction;
  at: number;
}

/** Which component action a message replies to. */
export interface NewAction {
  token: string;
  label: string | null;
  by: AccountRecord;
}

export interface NewUse {
  token: string;
  by: AccountRecord;
  at: number;
}

export interface ReactionsQuery {
  message: MessageRecord;
  /** Only reactions with this emoji. */
  emoji: string | undefined;
  /** Only reactions after this place in the list. */
  after: number | undefined;
  limit: number;
}

export interface PlacedReaction {
  place: number;
  reaction: Reaction;
}

export interface NewReaction {
  reactor: AccountRecord;
  emoji: string;
  at: number;
}
