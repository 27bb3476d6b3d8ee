import type {
  Account,
  AgentProfile,
  ChatState,
  ConfirmBy,
  Conversation,
  ConversationChange,
  ErrorCode,
  EventFrame,
  EventName,
  File,
  FileLinks,
  InputOf,
  Message,
  OperationName,
  OutputOf,
  Presence,
  Profile,
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
  /** The address of the service, such as `https://chat.example.com`. In a browser it defaults to the page's origin. */
  url?: string;
  /** An access token from an earlier sign-in. */
  token?: string;
  /**
   * Returns an access token. It is called at the start if there is no `token`, and whenever the
   * service no longer accepts the token. Meanwhile the model keeps its state, and messages wait in
   * the outbox. If it rejects, takes longer than `timeoutMs` or returns the same token again, it is
   * called again with backoff.
   */
  getToken?: GetToken;
  /**
   * Called when a sensitive call, such as `setAgentKey`, is refused because the sign-in was some time ago:
   * ask the person for their password and call `confirmPassword`, or have them sign in again. If it
   * resolves with true, the call is repeated; otherwise it fails with `confirmation_required`. A client
   * with a `getToken` first tries a new token from it.
   */
  confirm?: (by: ConfirmBy) => Promise<boolean>;
  /**
   * Where unsent messages, unsent changes of messages, drafts and the latest state are stored, so that
   * they survive a reload. Nothing is stored by default. Signing out deletes the state.
   */
  storage?: KeyValueStorage;
  /**
   * Where the files of unsent messages are stored, so that they survive a reload together with the
   * messages in `storage`: `indexedDbBlobs()` in browsers. Nothing is stored by default.
   */
  blobs?: BlobStorage;
  /**
   * Called with what fails in the background: unsent messages and drafts cannot be stored, because the
   * `storage` is full or forbidden, or the service refuses a change made before a reload.
   */
  onError?(error: Error): void;
  /** The timeout of a call; 20 s by default. */
  timeoutMs?: number;
  /** The shortest and the longest delay before a reconnect; 500 ms and 4 s by default. */
  reconnectMs?: { min: number; max: number };
  /** Replace those of the platform. Node before 22 has no WebSocket. */
  WebSocket?: WebSocketClass;
  fetch?: typeof fetch;
}

/** The part of a WebSocket that the client uses. The platform's own, `ws` and undici's have it. */
export interface WebSocketLike {
  readonly readyState: number;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  addEventListener(type: "close", listener: (event: { code: number }) => void): void;
  addEventListener(type: "error", listener: (event: object) => void): void;
  send(data: string): void;
  close(): void;
}

export type WebSocketClass = new (url: string, protocols: string[]) => WebSocketLike;

/** The part of `localStorage` that the client uses. */
export interface KeyValueStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** Stores bytes by key. Values that cannot be stored may be dropped. */
export interface BlobStorage {
  /** Resolves with null or undefined if there is no such key. */
  get(key: string): Promise<Blob | null | undefined>;
  set(key: string, blob: Blob): Promise<void>;
  delete(key: string): Promise<void>;
}

/**
 * `signed_out`: there is no valid token. `authorizing`: `getToken` was called and has not returned a
 * token yet. `connecting`: the first connection is being made. `online`: connected and up to date.
 * `offline`: not connected; the client reconnects by itself.
 */
export type Status = "signed_out" | "authorizing" | "connecting" | "online" | "offline";

/** The state of a message of the caller. Messages of others are always `sent`. */
export type Delivery = "sending" | "sent" | "failed";

/**
 * A file as a client shows it. In an unsent message it has an id of its own, its dimensions are null
 * and its `status` is `waiting` until the service has the bytes.
 */
export interface LocalFile extends File {
  /** How much of an unsent file is uploaded, from 0 to 1. */
  readonly progress?: number;
  /**
   * An object URL of the local bytes, for pictures, audio and video that this client sends. It stays
   * for a while after the message is sent: show it in place of a link, so that nothing loads twice.
   */
  readonly url?: string;
  /** Why the upload failed, as text for people. */
  readonly error?: string;
}

/** A message as a client shows it. Until it is `sent`, `id` is its `client_msg_id` and `seq` is 0. */
export interface LocalMessage extends Message {
  readonly files: LocalFile[];
  readonly delivery: Delivery;
  /** What the agent does right now, as text for people, while the message is streaming. */
  readonly turn_status?: string;
  /** Why sending failed, as text for people. */
  readonly failure?: string;
  /** The same for programs, if the service refused the message or a file of it. */
  readonly refusal?: CallFacts & { readonly file?: string };
  /** Sending the message again would fail again: the service refuses a file of it, or the bytes are gone. */
  readonly isRejected?: boolean;
}

/** A conversation as a client shows it. */
export interface LocalChat extends Conversation {
  /** The read positions of human participants, by username, as far as they are known. */
  readonly reads: Readonly<Record<string, number>>;
}

/** A range of a conversation's messages, oldest first and without gaps. */
export interface MessageWindow {
  readonly items: readonly LocalMessage[];
  /**
   * Changes of the group itself, oldest first: members, title, admin, modes of agents. Show each
   * before the first message with a higher `seq`.
   */
  readonly changes: readonly ConversationChange[];
  /** Whether older messages can be loaded. */
  readonly hasOlder: boolean;
  /** Whether newer messages can be loaded. Always false for `messages:<id>`, which is kept up to date. */
  readonly hasNewer: boolean;
  /** False until the first page is loaded. */
  readonly loaded: boolean;
}

export interface TypingState {
  /** The people and agents who are typing, without the caller. */
  readonly actors: readonly Account[];
}

/**
 * The pieces of the model, by name. They are immutable: a piece that has not changed is the same
 * object, and listeners are called only for a piece that has changed.
 */
export interface Pieces {
  status: Status;
  me: Account | null;
  /** Ids of the conversations, latest activity first, without those that were cleared and have nothing new. */
  chats: readonly string[];
  /** Unread counts over all conversations. */
  unread: { readonly human: number; readonly agent: number; readonly mentions: number };
  agents: readonly AgentProfile[];
  /** Usernames of the people whom the caller blocked. */
  blocked: readonly string[];
  [chat: `chat:${string}`]: LocalChat | null;
  /** The latest messages. */
  [messages: `messages:${string}`]: MessageWindow;
  /** Older messages, as long as there is a gap between them and the latest. */
  [aside: `aside:${string}`]: MessageWindow | null;
  [typing: `typing:${string}`]: TypingState;
  /** The text that the person has written and not sent. */
  [draft: `draft:${string}`]: string;
}

export type PieceName = keyof Pieces;
export type PieceOf<Name extends PieceName> = Pieces[Name];

export interface LiveModel {
  get<Name extends PieceName>(name: Name): PieceOf<Name>;
  /** Calls the listener after the piece has changed. Returns a function that unsubscribes. */
  watch(name: PieceName, listener: () => void): () => void;

  /** Loads the latest messages of a conversation, unless they are loaded, and keeps them up to date. */
  openChat(chatId: string): Promise<void>;
  loadOlder(chatId: string): Promise<void>;
  /**
   * Loads a message and those around it, unless it is loaded: into `aside:<id>`, or into
   * `messages:<id>` if there is no gap between them. They are kept up to date.
   */
  showAround(chatId: string, messageId: string): Promise<void>;
  /** Loads the page next to `aside:<id>`. Once it reaches the latest messages, it joins them and is null. */
  loadAside(chatId: string, direction: "older" | "newer"): Promise<void>;
  closeAside(chatId: string): void;
  /** Loads more conversations of the list. Resolves with whether there are still more. */
  loadMoreChats(): Promise<boolean>;
  /**
   * Shows a message with its files at once, uploads the files, and sends the message exactly once and
   * in order when the service can be reached. Returns its `client_msg_id`.
   */
  send(chatId: string, content: string, options?: SendOptions): string;
  /** Sends a failed message again. Files that are uploaded already are not uploaded again. */
  retry(clientMsgId: string): void;
  /** Drops a message that was not sent, and cancels the uploads of its files. */
  discard(clientMsgId: string): void;
  /** `react`, `edit` and `remove` show the change at once, and roll it back if the service refuses it. */
  react(messageId: string, emoji: string): Promise<void>;
  edit(messageId: string, content: string): Promise<void>;
  remove(chatId: string, messageIds: string[], scope: "me" | "everyone"): Promise<void>;
  /** Marks the conversation as read up to its latest message. */
  markRead(chatId: string): void;
  /** Makes the messages after a place unread again. Others still see how far the caller has read. */
  markUnread(chatId: string, seq: number): Promise<void>;
  /**
   * Changes the level of notifications, the mute, the pin or the archive of a conversation. Shows it at
   * once, and fetches what the service has if it refuses it.
   */
  setState(chatId: string, change: Partial<ChatState>): Promise<void>;
  /**
   * Removes everything so far for the caller: the conversation leaves `chats` until something new comes.
   * With `erase`, it is erased for everybody, if the caller is the only person in it.
   */
  clear(chatId: string, options?: { erase?: boolean }): Promise<void>;
  /** Reports that the person is typing. Call it on every keystroke: it is throttled. */
  typing(chatId: string): void;
  setDraft(chatId: string, text: string): void;
  /** Loads the caller's agents again. */
  refreshAgents(): Promise<void>;
}

export interface SendOptions {
  /** The id of the message that this one answers. */
  replyTo?: string;
  /** The files of the message: `File` objects of the browser, or nameless blobs. `content` may then be empty. */
  files?: readonly Blob[];
}

export interface UploadOptions {
  /** The name of the file; that of a `File` object by default. */
  name?: string;
  /** Called with how much is uploaded, from 0 to 1. Without `XMLHttpRequest` only at the start and at the end. */
  onProgress?(progress: number): void;
  /** Cancels the upload: the promise rejects with the reason of the signal. */
  signal?: AbortSignal;
}

/**
 * Addresses from which files can be loaded without a token, by file id. They are absolute and are
 * renewed before they expire.
 */
export interface LinkCache {
  /**
   * Resolves with links that are valid for minutes. Files that are gone, not uploaded or out of the
   * caller's reach are left out. Requests made at about the same time share one call.
   */
  get(fileIds: readonly string[]): Promise<FileLinks[]>;
  /** A valid link that is known already. */
  peek(fileId: string): FileLinks | undefined;
  /** Fetches links again, for a file that did not load. */
  renew(fileIds: readonly string[]): Promise<FileLinks[]>;
  /**
   * Fetches links and keeps them valid. Calls the listener after one of them has changed; `peek`
   * reads it. Returns a function that stops that.
   */
  watch(fileIds: readonly string[], listener: () => void): () => void;
}

/**
 * Accounts with the addresses of their pictures, by username. They are fetched in batches while they
 * are watched, again when an account has a new picture, and before the addresses expire.
 */
export interface ProfileCache {
  /** The profile as it was last fetched; its addresses are absolute. */
  peek(username: string): Profile | undefined;
  /** Calls the listener after the profile has changed. Returns a function that stops that. */
  watch(username: string, listener: () => void): () => void;
}

/**
 * Who is online, by username. People are watched while somebody watches them here, also over the sockets
 * that follow a lost one. `client.watchPresence` replaces what is watched: use one or the other.
 */
export interface PresenceCache {
  /** As the service told it last; undefined before that, and while there is no connection. */
  peek(username: string): Presence | undefined;
  /**
   * Calls the listener after the presence of the person has changed. Returns a function that stops that.
   * Of more than 200 people, those are told who were added last.
   */
  watch(username: string, listener: () => void): () => void;
  /** Says whether the person is at the screen of this client, now and after each reconnect. */
  setActive(isActive: boolean): void;
}

/** The operations that return an access token for a person. */
export type SignInCall = "signIn" | "signUp" | "finishOidcSignIn";

export interface Client extends Operations {
  readonly model: LiveModel;
  readonly links: LinkCache;
  readonly profiles: ProfileCache;
  readonly presence: PresenceCache;
  readonly status: Status;
  /** The token in use, to be stored across reloads. */
  readonly token: string | null;
  /**
   * How many messages of the account are not sent, failed ones included, in all tabs that share the
   * `storage`. `leave` deletes them: ask first.
   */
  readonly unsentCount: number;
  /** Signs in or up, and connects. */
  enter(how: SignInCall, input: InputOf<SignInCall>): Promise<OutputOf<"signIn">>;
  /** Connects and stays connected. Resolves when the model is up to date for the first time. */
  connect(): Promise<void>;
  /**
   * Reconnects now instead of after the backoff, for a «Retry» button. While connected, it only checks
   * that the connection is alive.
   */
  reconnect(): void;
  /** Signs out and forgets everything. */
  leave(): Promise<void>;
  /** Closes the connection. Unsent messages stay in the storage. */
  close(): void;
  /**
   * Uploads a file for a message in a conversation: pass the id of the result to `sendMessage` in
   * `file_ids`. A broken transfer is repeated. `model.send` uploads and sends in one step.
   */
  upload(chatId: string, blob: Blob, options?: UploadOptions): Promise<File>;
  /** Uploads a picture: pass the id of the result to `setAvatar` or `setChatPicture`. */
  uploadPicture(blob: Blob, options?: UploadOptions): Promise<File>;
  /**
   * Calls the listener for every event that arrives, but not for events sent while there was no
   * connection. Returns a function that unsubscribes.
   */
  on<Name extends EventName>(name: Name, listener: (frame: EventFrame<Name>) => void): () => void;
  /**
   * Calls the listener at least once, normally once, for every message from now on, in the order of
   * its conversation. That includes the caller's own messages and those sent while there was no
   * connection, but not imported ones. The next message of a conversation waits until the listener is
   * done. With a `storage`, a new process continues where an earlier one stopped. A message is
   * delivered again if the listener failed with `unavailable` or `rate_limited`, or if the process
   * was killed while it ran. Returns a function that unsubscribes.
   */
  eachMessage(listener: MessageListener, options?: EachOptions): () => void;
}

/** A message of an agent may still be streaming: `finalized_at` is then null. */
export type MessageListener = (message: Message) => void | Promise<void>;

export interface EachOptions {
  /** Where positions are stored; the client's own `storage` by default. */
  storage?: KeyValueStorage;
  /** The name under which positions are stored, for several listeners with one storage; `messages` by default. */
  name?: string;
  /**
   * Called when the listener throws; the next message follows. By default the error is an unhandled
   * rejection. After a `CallError` with the code `unavailable` or `rate_limited` the listener is
   * called again for the same message instead.
   */
  onError?(error: unknown, message: Message): void;
}

/** Why a call failed. Programs read all of it but `reason`, which is text for people. */
export interface CallFacts {
  readonly code: ErrorCode;
  /** The service's description without the code. */
  readonly reason: string;
  /** The seconds after which the call may be made again. */
  readonly retryAfter?: number | undefined;
  /** What is wrong with the input, by field. */
  readonly fields?: Readonly<Record<string, string>> | undefined;
  /** Of `not_found`: the accounts that do not exist. */
  readonly names?: readonly string[] | undefined;
  /** The limit that a file, or the uploads of a day, exceed. */
  readonly maxBytes?: number | undefined;
}

/** A call that the service refused, or that got no reply (`code` is then `unavailable`). */
export interface CallError extends Error, CallFacts {
  /** Why the call got no reply, if that is known. */
  readonly cause?: unknown;
  /** Of `confirmation_required`: how the person can confirm who they are. */
  readonly confirmBy: ConfirmBy | undefined;
  /** Of `writeTurn` at a wrong offset: the length of the answer in bytes. */
  readonly offset: number | undefined;
}

export interface AgentOptions
  extends Pick<ClientOptions, "url" | "timeoutMs" | "reconnectMs" | "WebSocket" | "fetch"> {
  /** A token of the external agent, from `createAgentToken`. */
  token: string;
  /**
   * Answers a turn. When it returns, the answer is complete. If it throws, the turn fails: people see
   * the message of a `TurnFailure`, and a general sentence for other errors.
   */
  onTurn(turn: AgentTurn): unknown;
  /** How many turns run at once; 8 by default. Further ones wait. */
  maxTurns?: number;
  /** Called with what `onTurn` throws, and when the token is not accepted. */
  onError?(error: unknown, turn?: AgentTurn): void;
}

/** A turn of an external agent: a message to answer. */
export interface AgentTurn {
  readonly id: number;
  readonly conversationId: string;
  /** The message that the answer is written to. */
  readonly answerId: string;
  /** The message to answer; null if it was deleted, and the turn answers messages before it. */
  readonly message: Message | null;
  /** The conversation up to the message to answer, or a little beyond it, oldest first. */
  readonly context: readonly Message[];
  /** Aborted when somebody stops the answer, when the service gives the turn up, and by `close()`. */
  readonly signal: AbortSignal;
  /** Appends text to the answer. The promise resolves when it is stored, and may be ignored. */
  write(text: string): Promise<void>;
  /** Shows the conversation in a few words what the agent is doing; empty: nothing in particular. */
  status(text: string): Promise<void>;
  /** Reports what the answer has cost. It counts against the agent's limits. */
  usage(usage: { input_tokens: number; output_tokens: number }): void;
}

/** A program that answers as an external agent, with every operation that agents may call. */
export interface Agent extends Operations {
  /** Settles when no more turns are claimed: rejects if the token is not accepted. */
  readonly closed: Promise<void>;
  /** Stops the running turns, which then fail, and closes the connection. */
  close(): Promise<void>;
}

export interface BackendOptions extends Pick<ClientOptions, "timeoutMs" | "fetch"> {
  /** The address of the service. */
  url: string;
  /** A service key, `pls_…`. It never leaves the backend. */
  key: string;
}

/** A person by their username, or by their id in the product. */
export type UserName = string | { readonly external_id: string };

/** Every operation with the rights of the service key, over HTTP. */
export interface Backend extends Operations {
  /** Every operation with the rights of a person, and no others. */
  as(user: UserName): Operations;
}
