import { expect } from "bun:test";
import type {
  Account,
  BlockList,
  ChatState,
  Conversation,
  ConversationChange,
  ConversationDetail,
  ConversationUpdate,
  EventFrame,
  EventName,
  EventParams,
  Message,
} from "@parley/protocol";
import { CallFailed, type Person, type Socket } from "./client.ts";

/** Everything that one person can see. */
export interface View {
  [conversationId: string]: {
    conversation: ConversationDetail;
    messages: Message[];
    changes: ConversationChange[];
  };
}

/** Fetches everything. The default page size is small, so that there are several pages. */
export async function fetchView(person: Person, pages = 7): Promise<View> {
  const view: View = {};
  let cursor: string | undefined;
  do {
    const page = await person.call("getChats", { limit: 5, ...(cursor && { cursor }) });
    for (const { id } of page.items) view[id] = await fetchConversation(person, id, pages);
    cursor = page.next_cursor ?? undefined;
  } while (cursor);
  return view;
}

async function fetchConversation(
  person: Person,
  chat_id: string,
  limit = 7,
): Promise<View[string]> {
  const conversation = await person.call("getChat", { chat_id });
  const messages: Message[] = [];
  const changes: ConversationChange[] = [];
  let before: string | undefined;
  for (;;) {
    const page = await person.call("getChatHistory", {
      chat_id,
      limit,
      ...(before && { before }),
    });
    messages.unshift(...page.items);
    changes.unshift(...page.changes);
    before = page.items[0]?.id;
    if (!page.has_more) return { conversation, messages, changes };
  }
}

type MessagesDeleted = EventParams<"events.messageDeleted">;

/** The person's own view of a conversation, as of a value of their own counter. */
interface OwnView {
  state: ChatState | undefined;
  last_read_seq: number;
  cleared_seq: number;
  own_seq: number;
  /** Whether anything came after what was cleared: lists have the conversation then. */
  hasNews: boolean;
}

/** The state of a model client. */
interface Known {
  chats: View;
  views: Record<string, OwnView>;
  /** The newest record of each account. */
  accounts: Record<string, Account>;
  /** Ids of messages that were deleted, for everyone or for oneself. */
  dropped: Set<string>;
  /** The highest read position of each person, by conversation, also of those who left. */
  reads: Record<string, Record<string, number>>;
  /** Counters of conversations at which the person left them. */
  left: Record<string, number>;
  accountsSeq: number;
  ownSeq: number;
  /** The people whom the person blocked. */
  blocked: BlockList;
}

/** A minimal client that follows the rules of docs/clients.md. */
class ModelClient {
  private readonly person: Person;
  private readonly known: Known;
  /** The counter at which each conversation was fetched. Events up to it are ignored. */
  private readonly fetched = new Map<string, number>();
  /** What the person has read in conversations before they were known, and the own counter then. */
  private readonly earlyReads = new Map<string, { seq: number; own_seq: number }>();
  /** The highest counter in an event of each conversation, known or not. */
  private readonly highestSeen = new Map<string, number>();
  /** The counter of the latest event about each unknown message. */
  private readonly changedUnseen = new Map<string, number>();
  /** Messages that a reply contained in a version older than such an event. */
  private readonly outdated = new Set<string>();

  private constructor(person: Person, known: Known) {
    this.person = person;
    this.known = known;
  }

  /** A client that has fetched only its counters. */
  static async start(person: Person): Promise<ModelClient> {
    const { accounts_seq, own_seq, blocked } = await overview(person, { known: {} });
    return new ModelClient(person, {
      chats: {},
      views: {},
      accounts: {},
      dropped: new Set(),
      reads: {},
      left: {},
      accountsSeq: accounts_seq,
      ownSeq: own_seq,
      blocked,
    });
  }

  static async load(person: Person): Promise<ModelClient> {
    const client = await ModelClient.start(person);
    await client.applyReply(await fetchView(person));
    return client;
  }

  /** Another client of the same person with a copy of this state. */
  copy(): ModelClient {
    return new ModelClient(this.person, structuredClone(this.known));
  }

  /** Applies a reply, which may be older than the state. */
  async applyReply(reply: View): Promise<void> {
    for (const [id, chat] of Object.entries(structuredClone(reply))) {
      const { conversation, messages, changes } = chat;
      if (conversation.seq < (this.known.left[id] ?? 0)) continue;
      const isNew = !(id in this.known.chats);
      this.applyConversation(conversation, conversation.reads);
      this.addChanges(id, changes);
      for (const message of messages) this.putMessage(message);
      const isBehind = isNew && conversation.seq < (this.highestSeen.get(id) ?? 0);
      if (isBehind) await this.catchUpOrLeave(id, conversation.seq);
      if (isNew && conversation.own_seq < this.known.ownSeq) {
        await this.catchUpViews(conversation.own_seq);
      }
    }
    for (const message_id of this.outdated) {
      const message = await this.person.call("getMessage", { message_id }).catch(nullIfGone);
      if (message) this.putMessage(message);
    }
    this.outdated.clear();
  }

  /** What the client shows. */
  view(): View {
    const view = structuredClone(this.known.chats);
    for (const [id, { cleared_seq, hasNews }] of Object.entries(this.known.views)) {
      // Values of the counter begin with zero, and nothing is cleared at first.
      if (!hasNews && cleared_seq > 0) delete view[id];
    }
    for (const [id, { conversation, messages, changes }] of Object.entries(view)) {
      for (const account of accountsIn({ conversation, messages, changes })) {
        Object.assign(account, this.known.accounts[account.username]);
      }
      const people = conversation.participants.filter(({ kind }) => kind === "human");
      const reads = this.known.reads[id] ?? {};
      conversation.reads = Object.fromEntries(
        people.map(({ username }) => [username, reads[username] ?? -1]),
      );
      const { state, last_read_seq = -1, cleared_seq = -1 } = this.known.views[id] ?? {};
      // Agents have no view of their own.
      Object.assign(conversation, { last_read_seq }, state && { state, cleared_seq });
      conversation.own_seq = this.known.ownSeq;
      this.derive(conversation, messages);
    }
    return view;
  }

  /** Derives the latest message and the unread counts. */
  private derive(conversation: Conversation, messages: readonly Message[]): void {
    conversation.last_message = messages.at(-1) ?? null;
    const unread = messages.filter(
      ({ seq, imported, sender }) =>
        !imported && seq > conversation.last_read_seq && !this.isBlocked(sender),
    );
    const by = (kind: string) => unread.filter(({ sender }) => sender.kind === kind).length;
    // After `markUnread`, own messages are unread too, but who mentions themselves is not told.
    const mentions = unread.filter(
      (message) => message.mentions.some(this.isMe) && !this.isMe(message.sender.username),
    ).length;
    conversation.unread = { human: by("human"), agent: by("agent"), mentions };
    conversation.unread_count = unread.length;
  }

  /** A block of a person includes their agents. */
  private isBlocked = ({ username }: Account) =>
    this.known.blocked.usernames.includes(username.replace(/:.*/, ""));

  private isMe = (username: string) => username === this.person.username;

  /** Catches up after an absence. */
  async catchUp(): Promise<void> {
    const known = Object.fromEntries(
      Object.entries(this.known.chats).map(([id, { conversation }]) => [id, conversation.seq]),
    );
    const compared = await this.catchUpUncounted({ known });
    for (const id of compared.gone) this.leave(id, (known[id] ?? 0) + 1);
    for (const { conversation_id: id } of compared.new) {
      await this.applyReply({ [id]: await fetchConversation(this.person, id) });
    }
    for (const id of Object.keys(this.known.chats)) {
      if (known[id] !== undefined) await this.catchUpConversation(id, known[id]);
    }
  }

  /** Fetches views that may have changed before their conversation was known. */
  private async catchUpViews(own_since: number): Promise<void> {
    const { states, own_seq } = await overview(this.person, { own_since });
    for (const { conversation_id, ...view } of states) {
      this.learnView(conversation_id, { ...view, own_seq });
    }
  }

  /** Fetches new names and hidden messages. */
  private async catchUpUncounted(input: { known?: Record<string, number> }) {
    const { accountsSeq: accounts_since, ownSeq: own_since } = this.known;
    const page = await overview(this.person, { ...input, accounts_since, own_since });
    this.learnAccounts(page.accounts);
    for (const { conversation_id, ids } of page.hidden) this.dropMessages(conversation_id, ids);
    for (const { conversation_id, ...view } of page.states) {
      this.learnView(conversation_id, { ...view, own_seq: page.own_seq });
    }
    this.known.accountsSeq = Math.max(accounts_since, page.accounts_seq);
    this.learnBlocked(page.blocked);
    this.known.ownSeq = Math.max(own_since, page.own_seq);
    if (page.has_more) await this.catchUpUncounted({});
    return page;
  }

  /** Catches up, or leaves if the person left the conversation meanwhile. */
  private async catchUpOrLeave(id: string, since_seq: number): Promise<void> {
    const isGone = (await this.catchUpConversation(id, since_seq).catch(nullIfGone)) === null;
    if (isGone) this.leave(id, this.highestSeen.get(id) ?? 0);
  }

  private async catchUpConversation(chat_id: string, since_seq: number): Promise<void> {
    const page = await this.person.call("getUpdates", { chat_id, since_seq, limit: 3 });
    if (!("messages" in page)) throw new Error("getUpdates did not return one conversation");
    this.applyConversation(page.conversation, page.reads);
    for (const message of page.messages) this.putMessage(message);
    this.addChanges(chat_id, page.changes);
    this.dropMessages(chat_id, page.deleted_ids);
    // Nothing that was cleared is among them.
    if (page.deleted_ids.length > 0) this.learnNews(chat_id, Number.POSITIVE_INFINITY);
    if (page.has_more) await this.catchUpConversation(chat_id, page.seq);
  }

  async apply({ method, params, at, own_seq }: EventFrame): Promise<void> {
    this.learnAccounts(params);
    if (at) {
      const { conversation_id: id, seq } = at;
      this.highestSeen.set(id, Math.max(seq, this.highestSeen.get(id) ?? 0));
    }
    if (method === "events.conversationUpdated") this.leaveUnknown(params as ConversationUpdate);
    // Also if the conversation was fetched since: a reply from before may arrive later.
    if (method === "events.messageDeleted") this.dropDeleted(params as MessagesDeleted);
    if (at && this.isUnlisted(method, params, at)) {
      const { conversation_id: id } = at;
      const fetched = await fetchConversation(this.person, id).catch(nullIfGone);
      if (fetched) await this.applyReply({ [id]: fetched });
      return;
    }
    if (at && method !== "events.conversationNew" && !this.isNext(at)) return;
    const handle = this.handlers[method] as
      | ((params: unknown, seq: number) => void | Promise<void>)
      | undefined;
    await handle?.(params, at?.seq ?? 0);
    const chat = at && this.known.chats[at.conversation_id];
    if (chat) chat.conversation.seq = Math.max(chat.conversation.seq, at.seq);
    if (own_seq === undefined) return;
    if (method === "events.blocksUpdated") {
      this.learnBlocked({ ...(params as EventParams<"events.blocksUpdated">), own_seq });
    }
    if (method === "events.chatStateUpdated") {
      const { conversation_id, ...view } = params as EventParams<typeof method>;
      this.learnView(conversation_id, { ...view, own_seq });
    }
    if (method === "events.chatCleared") {
      this.cleared(params as EventParams<typeof method>, own_seq);
    }
    if (own_seq > this.known.ownSeq + 1) await this.catchUpUncounted({});
    this.known.ownSeq = Math.max(this.known.ownSeq, own_seq);
  }

  /**
   * Whether the event brings a conversation to the lists that was not there when the client started,
   * because it had been cleared.
   */
  private isUnlisted(
    method: EventName,
    params: EventFrame["params"],
    { conversation_id, seq }: { conversation_id: string; seq: number },
  ): boolean {
    if (conversation_id in this.known.chats) return false;
    if (seq <= (this.known.left[conversation_id] ?? -1)) return false;
    if (method === "events.conversationUpdated") return this.isIn(params as ConversationUpdate);
    return method === "events.messageNew";
  }

  /** Of two views, the one with the higher `own_seq` is newer; with the same, the higher position. */
  private learnView(
    id: string,
    told: Omit<OwnView, "hasNews" | "cleared_seq"> & { cleared_seq?: number | undefined },
  ): void {
    if (!(id in this.known.chats)) return;
    const { cleared_seq = 0, ...view } = told;
    const known = this.known.views[id];
    if (!known) {
      const early = this.earlyReads.get(id);
      const isRead = early !== undefined && early.own_seq >= view.own_seq;
      const last_read_seq = Math.max(view.last_read_seq, isRead ? early.seq : 0);
      this.known.views[id] = { ...view, last_read_seq, cleared_seq, hasNews: cleared_seq === 0 };
      return;
    }
    if (view.own_seq >= known.own_seq) {
      const isSame = view.own_seq === known.own_seq;
      const position = isSame
        ? Math.max(known.last_read_seq, view.last_read_seq)
        : view.last_read_seq;
      Object.assign(known, view, { last_read_seq: position });
    }
    this.clear(id, cleared_seq);
  }

  private cleared(
    { conversation_id: id, cleared_seq, erased }: EventParams<"events.chatCleared">,
    own_seq: number,
  ): void {
    if (erased) this.leave(id, Number.MAX_SAFE_INTEGER);
    const view = this.known.views[id];
    if (!view) return;
    this.clear(id, cleared_seq);
    if (own_seq <= view.own_seq) return;
    view.own_seq = own_seq;
    view.last_read_seq = Math.max(view.last_read_seq, cleared_seq);
  }

  /** Drops what does not exist any more. */
  private clear(id: string, seq: number): void {
    const view = this.known.views[id];
    const chat = this.known.chats[id];
    if (!view || !chat || seq <= view.cleared_seq) return;
    view.cleared_seq = seq;
    const isLeft = (each: { seq: number }) => each.seq > seq;
    chat.messages = chat.messages.filter(isLeft);
    chat.changes = chat.changes.filter(isLeft);
    view.hasNews = chat.messages.length + chat.changes.length > 0;
  }

  private isCleared = (id: string, seq: number) => seq <= (this.known.views[id]?.cleared_seq ?? 0);

  /** Something with this place exists, or existed. */
  private learnNews(id: string, seq: number): void {
    const view = this.known.views[id];
    if (view && seq > view.cleared_seq) view.hasNews = true;
  }

  /** Whether to apply the event. Throws on a gap or a repeat, which an open socket never has. */
  private isNext({ conversation_id, seq }: { conversation_id: string; seq: number }): boolean {
    if (seq <= (this.fetched.get(conversation_id) ?? -1)) return false;
    const before = this.known.chats[conversation_id]?.conversation.seq;
    // The person has left, or was removed before they could fetch the conversation.
    if (before === undefined) return false;
    if (seq !== before + 1) {
      throw new Error(`the counter of ${conversation_id} went from ${before} to ${seq}`);
    }
    return true;
  }

  private readonly handlers: {
    [Name in EventName]?: (params: EventParams<Name>, seq: number) => void | Promise<void>;
  } = {
    "events.conversationNew": async ({ id }) => {
      const fetched = await fetchConversation(this.person, id).catch(nullIfGone);
      if (fetched) await this.applyReply({ [id]: fetched });
    },
    "events.conversationUpdated": (shared) => this.conversationUpdated(shared),
    "events.messageNew": (message) => {
      const chat = this.known.chats[message.conversation_id];
      if (!chat) return;
      const { updated_at } = chat.conversation;
      const isEarlier = message.imported && message.seq > 1 && message.created_at < updated_at;
      if (!isEarlier) chat.conversation.updated_at = message.created_at;
      this.putMessage(message);
      const { kind, username } = message.sender;
      const isReader = kind === "human" || username === this.person.username;
      if (isReader && !message.imported)
        this.moveRead(message.conversation_id, username, message.seq);
    },
    "events.messageEdited": (message, seq) => this.messageChanged(message, seq),
    "events.messageComplete": (message, seq) => {
      this.checkDeltas(message);
      this.messageChanged(message, seq);
    },
    "events.messageDelta": ({ id, delta, offset }) => this.appendDelta(id, delta, offset),
    "events.reactionAdded": ({ message_id, reactor, emoji }, seq) =>
      this.react(message_id, reactor, emoji, 1, seq),
    "events.reactionRemoved": ({ message_id, reactor, emoji }, seq) =>
      this.react(message_id, reactor, emoji, -1, seq),
    "events.toolCallUpdated": ({ message_id, call }, seq) => {
      const message = this.find(message_id);
      if (!message) {
        this.changedUnseen.set(message_id, seq);
        return;
      }
      if (message.version >= seq) return;
      message.version = seq;
      const known = message.tool_calls.findIndex(({ id }) => id === call.id);
      if (known < 0) message.tool_calls.push(call);
      else message.tool_calls[known] = call;
    },
    "events.chatRead": ({ conversation_id, reader, last_read_seq }) =>
      this.moveRead(conversation_id, reader.username, last_read_seq),
  };

  private learnBlocked(blocked: BlockList): void {
    if (blocked.own_seq >= this.known.blocked.own_seq) this.known.blocked = blocked;
  }

  /** Keeps the newest record of every account in a value. */
  private learnAccounts(value: unknown): void {
    for (const account of accountsIn(value)) {
      const known = this.known.accounts[account.username];
      if (account.version >= (known?.version ?? 0)) {
        this.known.accounts[account.username] = { ...account };
      }
    }
  }

  private applyConversation(fetched: Conversation, reads: Readonly<Record<string, number>>): void {
    const { id, seq } = fetched;
    this.learnAccounts(fetched);
    const chat = this.known.chats[id];
    if (!chat) {
      const conversation = { ...fetched, reads: {} };
      this.known.chats[id] = { conversation, messages: [], changes: [] };
    } else if (seq >= chat.conversation.seq) Object.assign(chat.conversation, fetched);
    this.fetched.set(id, Math.max(seq, this.fetched.get(id) ?? 0));
    for (const [username, position] of Object.entries(reads)) this.showRead(id, username, position);
    const { state, last_read_seq, cleared_seq, own_seq } = fetched;
    this.learnView(id, { state, last_read_seq, cleared_seq, own_seq });
  }

  private isIn = ({ participants }: ConversationUpdate) =>
    participants.some(({ username }) => this.isMe(username));

  /** A reply from before the person left a conversation may arrive after they have come back. */
  private leaveUnknown(shared: ConversationUpdate): void {
    if (!(shared.id in this.known.chats) && !this.isIn(shared)) this.leave(shared.id, shared.seq);
  }

  private conversationUpdated(shared: ConversationUpdate): void {
    const chat = this.known.chats[shared.id];
    if (!chat) return;
    if (!this.isIn(shared)) {
      this.leave(shared.id, shared.seq);
      return;
    }
    const before = new Set(chat.conversation.participants.map(({ username }) => username));
    const { last_message: _, changes, ...rest } = shared;
    Object.assign(chat.conversation, rest);
    this.addChanges(shared.id, changes);
    for (const { username } of shared.participants) {
      if (!before.has(username)) this.showRead(shared.id, username, shared.seq - 1);
    }
  }

  /** Changes with the same seq arrive together, so that a known seq means that all are known. */
  private addChanges(id: string, changes: readonly ConversationChange[]): void {
    const known = this.known.chats[id]?.changes;
    if (!known) return;
    this.learnAccounts(changes);
    for (const { seq } of changes) this.learnNews(id, seq);
    const seqs = new Set(known.map(({ seq }) => seq));
    known.push(...changes.filter(({ seq }) => !seqs.has(seq) && !this.isCleared(id, seq)));
    known.sort((one, other) => one.seq - other.seq);
  }

  private leave(id: string, seq: number): void {
    delete this.known.chats[id];
    delete this.known.views[id];
    this.earlyReads.delete(id);
    this.fetched.delete(id);
    this.known.left[id] = seq;
  }

  /** Somebody has read or sent something. */
  private moveRead(id: string, username: string, seq: number): void {
    this.showRead(id, username, seq);
    if (!this.isMe(username)) return;
    const view = this.known.views[id];
    if (!view) {
      this.earlyReads.set(id, { seq, own_seq: this.known.ownSeq });
      return;
    }
    view.last_read_seq = Math.max(view.last_read_seq, seq);
    view.own_seq = Math.max(view.own_seq, this.known.ownSeq);
  }

  private showRead(id: string, username: string, seq: number): void {
    const reads = this.known.reads[id] ?? {};
    this.known.reads[id] = reads;
    reads[username] = Math.max(reads[username] ?? 0, seq);
  }

  private putMessage(message: Message): void {
    this.learnAccounts(message);
    const messages = this.known.chats[message.conversation_id]?.messages;
    this.learnNews(message.conversation_id, message.seq);
    if (!messages || this.known.dropped.has(message.id)) return;
    if (this.isCleared(message.conversation_id, message.seq)) return;
    if (message.version < (this.changedUnseen.get(message.id) ?? 0)) {
      this.outdated.add(message.id);
      return;
    }
    const index = messages.findIndex(({ id }) => id === message.id);
    const known = messages[index];
    if (!known) {
      messages.push(message);
      messages.sort((one, other) => one.seq - other.seq);
    } else if (isLater(message, known)) messages[index] = message;
  }

  private messageChanged(message: Message, seq: number): void {
    const known = this.find(message.id);
    if (!known) {
      this.changedUnseen.set(message.id, seq);
      return;
    }
    const mine = known.reactions.filter(({ reacted }) => reacted);
    const emojis = new Set(mine.map(({ emoji }) => emoji));
    const isMine = ({ emoji }: { emoji: string }) => ({ reacted: emojis.has(emoji) });
    const reactions = message.reactions.map((each) => ({ ...each, ...isMine(each) }));
    this.putMessage({ ...message, reactions });
  }

  private find(messageId: string): Message | undefined {
    const chats = Object.values(this.known.chats);
    return chats.flatMap(({ messages }) => messages).find(({ id }) => id === messageId);
  }

  /** Appends a delta, which must begin where the content ends. Skips one that was fetched already. */
  private appendDelta(messageId: string, delta: string, offset: number): void {
    const message = this.find(messageId);
    const length = Buffer.byteLength(message?.content ?? "");
    if (!message || offset <= length) return;
    if (offset - Buffer.byteLength(delta) !== length) {
      throw new Error(`a delta up to ${offset} does not begin at ${length} bytes`);
    }
    message.content += delta;
  }

  /** The deltas add up to the content. A client that saw none has nothing to compare. */
  private checkDeltas(message: Message): void {
    const streamed = this.find(message.id)?.content ?? "";
    if (streamed !== "" && streamed !== message.content) {
      throw new Error(
        `the deltas add up to "${streamed}", but the content is "${message.content}"`,
      );
    }
  }

  private dropDeleted({ conversation_id, ids }: MessagesDeleted): void {
    this.dropMessages(conversation_id, ids);
  }

  private dropMessages(conversationId: string, ids: readonly string[]): void {
    for (const id of ids) this.known.dropped.add(id);
    const chat = this.known.chats[conversationId];
    if (chat) chat.messages = chat.messages.filter(({ id }) => !this.known.dropped.has(id));
  }

  private react(
    messageId: string,
    reactor: Account,
    emoji: string,
    step: 1 | -1,
    seq: number,
  ): void {
    const message = this.find(messageId);
    if (!message) this.changedUnseen.set(messageId, seq);
    if (!message || message.version >= seq) return;
    message.version = seq;
    const known = message.reactions.find((each) => each.emoji === emoji);
    const summary = known ?? { emoji, count: 0, reacted: false };
    if (!known) message.reactions.push(summary);
    summary.count += step;
    if (this.isMe(reactor.username)) summary.reacted = step === 1;
    message.reactions = message.reactions.filter(({ count }) => count > 0);
  }
}

async function overview(
  person: Person,
  input: { known?: Record<string, number>; accounts_since?: number; own_since?: number },
) {
  const page = await person.call("getUpdates", input);
  if (!("gone" in page)) throw new Error("getUpdates did not compare");
  return page;
}

/** Whether one is newer. A streaming message grows without a new version. */
const isLater = (one: Message, other: Message): boolean =>
  one.version > other.version ||
  (one.version === other.version && one.content.length > other.content.length);

const isAccount = (value: object): value is Account =>
  "username" in value && "display_name" in value && "version" in value;

/** Every account record in a value. */
function* accountsIn(value: unknown): Generator<Account> {
  if (typeof value !== "object" || value === null) return;
  if (isAccount(value)) yield value;
  for (const part of Object.values(value)) yield* accountsIn(part);
}

/** Keeps several model clients of one person up to date by events, and compares them with the server. */
export class Watcher implements AsyncDisposable {
  readonly person: Person;
  readonly socket: Socket;
  private readonly live: ModelClient;
  /** A client with the state at the start that has been offline since. */
  private readonly away: ModelClient;
  /** Replies that have not arrived yet. */
  private readonly inFlight: View[] = [];
  /** Clients that started later, with replies that have not arrived yet. */
  private readonly newcomers: { client: ModelClient; fetched: View; seen: number }[] = [];
  private seen = 1;

  private constructor(person: Person, socket: Socket, live: ModelClient) {
    this.person = person;
    this.socket = socket;
    this.live = live;
    this.away = live.copy();
  }

  static async start(person: Person): Promise<Watcher> {
    const socket = await person.connect();
    const watcher = new Watcher(person, socket, await ModelClient.load(person));
    await watcher.fetchLate();
    return watcher;
  }

  /** Fetches everything now. The replies are applied at the next check, after all events until then. */
  async fetchLate(): Promise<void> {
    this.inFlight.push(await fetchView(this.person));
  }

  /**
   * Starts another client. Its history, or everything it fetches, is applied at the next check, after
   * all events until then.
   */
  async startAnother(late: "history" | "everything"): Promise<void> {
    await this.socket.settled();
    const seen = this.socket.events.length;
    const client = await ModelClient.start(this.person);
    const fetched = await fetchView(this.person);
    if (late === "history") await client.applyReply(withoutHistory(fetched));
    this.newcomers.push({ client, fetched, seen });
  }

  /** Clients that stayed online, were offline or start now must have the same view. */
  async check(): Promise<void> {
    await this.socket.settled();
    await this.applyEvents(this.live, this.seen);
    this.seen = this.socket.events.length;
    for (const reply of this.inFlight.splice(0)) await this.live.applyReply(reply);
    const fresh = comparable(await fetchView(this.person));
    expect(comparable(this.live.view())).toEqual(fresh);
    for (const { client, fetched, seen } of this.newcomers.splice(0)) {
      await this.applyEvents(client, seen);
      await client.applyReply(fetched);
      expect(comparable(client.view())).toEqual(fresh);
    }
    await this.away.catchUp();
    expect(comparable(this.away.view())).toEqual(fresh);
  }

  private async applyEvents(client: ModelClient, from: number): Promise<void> {
    for (const frame of this.socket.events.slice(from)) await client.apply(structuredClone(frame));
  }

  [Symbol.asyncDispose]() {
    return this.socket[Symbol.asyncDispose]();
  }
}

const withoutHistory = (view: View): View =>
  Object.fromEntries(
    Object.entries(view).map(([id, { conversation }]) => [
      id,
      { conversation, messages: [], changes: [] },
    ]),
  );

/** Null if what an event announced was deleted, or hidden from the person, before it was fetched. */
function nullIfGone(error: unknown): null {
  const isGone = error instanceof CallFailed && ["forbidden", "not_found"].includes(error.code);
  if (isGone) return null;
  throw error;
}

/** Lists have only the beginning of a long last message, of which a client may know the rest. */
const EXCERPT_CHARS = 1999;

/**
 * The view without what a client cannot know: the order in which reactions first appeared while it was
 * offline, and new names of people with whom it shares no conversation any more. Of last messages it has
 * what lists have of them.
 */
export function comparable(view: View): View {
  const copy = structuredClone(view);
  const byEmoji = (one: { emoji: string }, other: { emoji: string }) =>
    one.emoji < other.emoji ? -1 : 1;
  const present = new Set(
    Object.values(copy).flatMap(({ conversation }) =>
      conversation.participants.map(({ username }) => username),
    ),
  );
  for (const { conversation, messages, changes } of Object.values(copy)) {
    const last = conversation.last_message ? [conversation.last_message] : [];
    for (const message of [...messages, ...last]) message.reactions.sort(byEmoji);
    for (const message of last) {
      message.content = message.content.slice(0, EXCERPT_CHARS);
      delete message.excerpt;
    }
    for (const account of accountsIn({ conversation, messages, changes })) {
      if (present.has(account.username)) continue;
      Object.assign(account, { display_name: account.username, version: 0 });
    }
  }
  return copy;
}
