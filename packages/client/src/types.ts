import type {
  Account,
  AgentProfile,
  Conversation,
  ConversationChange,
  ErrorCode,
  EventFrame,
  EventName,
  InputOf,
  Message,
  OperationName,
  OutputOf,
} from "@parley/protocol";

/** Every operation of the service as a method: `client.sendMessage({ … })`. */
export type Operations = {
  [Name in OperationName]: Record<string, never> extends InputOf<Name>
    ? (input?: InputOf<Name>) => Promise<OutputOf<Name>>
    : (input: InputOf<Name>) => Promise<OutputOf<Name>>;
};

/** Returns an access token that the service accepts. */
export type GetToken = () => string | Promise<string>;

export interface ClientOptions {
  /** Base address of the service, such as `https://chat.example.com`; in a browser the page's own by default. */
  url?: string;
  /** An access token from an earlier sign-in. */
  token?: string;
  /**
   * Gives an access token: called at the start if there is no `token`, and whenever one has ended.
   * What is shown and what was not sent stay meanwhile. One that rejects, does not answer within
   * `timeoutMs` or gives the same token again is called again, after a pause that grows.
   */
  getToken?: GetToken;
  /**
   * Where unsent messages, drafts and the latest of what was shown survive a reload; nowhere by
   * default. Signing out forgets what was shown.
   */
  storage?: KeyValueStorage;
  /** How long a call may take before it fails; 20 s by default. */
  timeoutMs?: number;
  /** Shortest and longest pause before a lost connection is made again; 500 ms and 4 s by default. */
  reconnectMs?: { min: number; max: number };
  /** Stand-ins for the platform's own: Node before 22 has no WebSocket. */
  WebSocket?: WebSocketClass;
  fetch?: typeof fetch;
}

/** The part of a WebSocket that is needed. The platform's own, `ws` and undici's have it. */
export interface WebSocketLike {
  readonly readyState: number;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  addEventListener(type: "close", listener: (event: { code: number }) => void): void;
  addEventListener(type: "error", listener: (event: object) => void): void;
  send(data: string): void;
  close(): void;
}

export type WebSocketClass = new (url: string) => WebSocketLike;

/** The part of `localStorage` that is needed. */
export interface KeyValueStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/**
 * `signed_out`: there is no valid token. `authorizing`: `getToken` was called and has not given one
 * yet. `connecting`: the first connection is being made. `online`: connected and up to date.
 * `offline`: no connection; it comes by itself.
 */
export type Status = "signed_out" | "authorizing" | "connecting" | "online" | "offline";

/** Where a message of our own stands. Messages of others are always `sent`. */
export type Delivery = "sending" | "sent" | "failed";

/** A message as a client shows it. Until it is `sent`, `id` is its `client_msg_id` and `seq` is 0. */
export interface LocalMessage extends Message {
  readonly delivery: Delivery;
  /** Why sending failed, in words. */
  readonly failure?: string;
}

/** A conversation as a client shows it. */
export interface LocalChat extends Conversation {
  /** How far each human participant has read, by username; of those known so far. */
  readonly reads: Readonly<Record<string, number>>;
}

/** A window on a conversation's messages, oldest first and without gaps. */
export interface MessageWindow {
  readonly items: readonly LocalMessage[];
  /**
   * What changed of the group itself, oldest first: members, title, admin, modes of agents. Each
   * stands before the first message with a higher `seq`.
   */
  readonly changes: readonly ConversationChange[];
  /** Whether older ones can be loaded. */
  readonly hasOlder: boolean;
  /** Whether newer ones can be loaded; never of the latest ones, which come by themselves. */
  readonly hasNewer: boolean;
  /** False until the first page is there. */
  readonly loaded: boolean;
}

export interface TypingState {
  /** Who is typing, other than the caller; agents included. */
  readonly actors: readonly Account[];
}

/**
 * What can be observed, by name. Snapshots are immutable: a piece that has not changed is the very
 * same object, and only those who watch a piece that has changed are told.
 */
export interface Pieces {
  status: Status;
  me: Account | null;
  /** Ids of the conversations, latest activity first. */
  chats: readonly string[];
  /** Unread figures over all conversations. */
  unread: { readonly human: number; readonly agent: number; readonly mentions: number };
  agents: readonly AgentProfile[];
  [chat: `chat:${string}`]: LocalChat | null;
  /** The messages up to the latest. */
  [messages: `messages:${string}`]: MessageWindow;
  /** Messages further back, as long as those between them and the latest are not loaded. */
  [aside: `aside:${string}`]: MessageWindow | null;
  [typing: `typing:${string}`]: TypingState;
  /** The text the person was writing there when they last left. */
  [draft: `draft:${string}`]: string;
}

export type PieceName = keyof Pieces;
export type PieceOf<Name extends PieceName> = Pieces[Name];

export interface LiveModel {
  get<Name extends PieceName>(name: Name): PieceOf<Name>;
  /** Calls the listener after the piece has changed; returns how to stop. */
  watch(name: PieceName, listener: () => void): () => void;

  /** Loads a conversation's latest messages if they are not there, and keeps them up to date. */
  openChat(chatId: string): Promise<void>;
  loadOlder(chatId: string): Promise<void>;
  /**
   * Loads a message and those around it, if it is not loaded, without all that was said since: as
   * `aside:<id>`, or right into `messages:<id>` if nothing between is missing. Kept up to date too.
   */
  showAround(chatId: string, messageId: string): Promise<void>;
  /** Loads what is next to `aside:<id>`, which ends when it has met the latest messages. */
  loadAside(chatId: string, direction: "older" | "newer"): Promise<void>;
  closeAside(chatId: string): void;
  /** Loads further conversations of the list; false when there are no more. */
  loadMoreChats(): Promise<boolean>;
  /** Writes a message at once; it leaves when the connection allows, exactly once and in order. Returns its `client_msg_id`. */
  send(chatId: string, content: string, options?: { replyTo?: string }): string;
  /** Tries a failed message again, or drops it. */
  retry(clientMsgId: string): void;
  discard(clientMsgId: string): void;
  /** Shows the change at once and takes it back if the server refuses. */
  react(messageId: string, emoji: string): Promise<void>;
  edit(messageId: string, content: string): Promise<void>;
  remove(chatId: string, messageIds: string[], scope: "me" | "everyone"): Promise<void>;
  /** Marks as read up to the latest message known; a no-op when it is read already. */
  markRead(chatId: string): void;
  /** Says that the person is typing; call it on every keystroke, it sends as often as needed. */
  typing(chatId: string): void;
  setDraft(chatId: string, text: string): void;
  /** Loads, or loads again, the caller's agents. */
  refreshAgents(): Promise<void>;
}

export interface Client extends Operations {
  readonly model: LiveModel;
  readonly status: Status;
  /** The token in use, for keeping across reloads. */
  readonly token: string | null;
  /** Signs in or up and connects. */
  enter(
    how: "signIn" | "signUp",
    input: InputOf<"signIn"> | InputOf<"signUp">,
  ): Promise<OutputOf<"signIn">>;
  /** Opens the connection and keeps it open; resolves when the model is up to date for the first time. */
  connect(): Promise<void>;
  /** Tries to connect now instead of after the pause, as for a «Retry» button; does nothing while connected. */
  reconnect(): void;
  /** Signs out and forgets everything. */
  leave(): Promise<void>;
  /** Ends the connection for good; what was not sent stays in the storage. */
  close(): void;
  /**
   * Calls the listener for every event that comes while there is a connection, and for none that was
   * missed; returns how to stop.
   */
  on<Name extends EventName>(name: Name, listener: (frame: EventFrame<Name>) => void): () => void;
  /**
   * Calls the listener for every message from now on, the caller's own too, exactly once and in the
   * order of its conversation, also for those that came while there was no connection; returns how
   * to stop. The next message of a conversation waits until the listener is done. With a `storage`
   * it goes on where an earlier process ended: one that was killed while its listener was working
   * gets that message again.
   */
  eachMessage(listener: MessageListener, options?: EachOptions): () => void;
}

/** An answer of an agent may still be streaming: `finalized_at` is then null. */
export type MessageListener = (message: Message) => void | Promise<void>;

export interface EachOptions {
  /** Where positions are kept; the client's own `storage` by default. */
  storage?: KeyValueStorage;
  /** Tells positions apart where several listeners share a storage; `messages` by default. */
  name?: string;
  /**
   * Called when the listener fails, which then goes on with the next message; by default the error is
   * an unhandled rejection. A `CallError` with the code `unavailable` or `rate_limited` is not a
   * failure: the listener is called again for the same message.
   */
  onError?(error: unknown, message: Message): void;
}

/** A call that the service refused, or that never got through (`code` is then `unavailable`). */
export interface CallError extends Error {
  readonly code: ErrorCode;
  /** What kept the call from getting through, if that is known. */
  readonly cause?: unknown;
  readonly retryAfter: number | undefined;
  readonly fields: Readonly<Record<string, string>> | undefined;
}
