import { expect } from "bun:test";
import type {
  Account,
  ConversationChange,
  ConversationDetail,
  ConversationUpdate,
  EventFrame,
  EventName,
  EventParams,
  Message,
} from "@parley/protocol";
import { CallFailed, type Person, type Socket } from "./client.ts";
import { onSeveralNodes } from "./server.ts";

/** Everything one person can see: what a client that has loaded all of it would hold. */
export interface View {
  [conversationId: string]: {
    conversation: ConversationDetail;
    messages: Message[];
    changes: ConversationChange[];
  };
}

/** With small pages, so that there are several; a test with much to fetch asks for larger ones. */
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

/** What a client that was away since `known` knows after it has asked for the updates. */
async function catchUp(person: Person, known: View): Promise<View> {
  const view = structuredClone(known);
  const seqs = Object.fromEntries(
    Object.entries(known).map(([id, { conversation }]) => [id, conversation.seq]),
  );
  const compared = await person.call("getUpdates", { known: seqs });
  if (!("gone" in compared)) throw new Error("a comparison was asked for");
  for (const id of compared.gone) delete view[id];
  for (const { conversation_id } of compared.new) {
    view[conversation_id] = await fetchConversation(person, conversation_id);
  }
  for (const id of Object.keys(view)) {
    const state = view[id];
    if (state && known[id]) await applyUpdates(person, id, state);
  }
  return view;
}

async function applyUpdates(person: Person, chat_id: string, state: View[string]): Promise<void> {
  let since_seq = state.conversation.seq;
  for (;;) {
    const page = await person.call("getUpdates", { chat_id, since_seq, limit: 3 });
    if (!("messages" in page)) throw new Error("updates of one conversation were asked for");
    const changed = new Set([...page.messages.map(({ id }) => id), ...page.deleted_ids]);
    state.messages = [...state.messages.filter(({ id }) => !changed.has(id)), ...page.messages];
    state.changes.push(...page.changes);
    since_seq = page.seq;
    if (!page.has_more) break;
  }
  state.messages = await Promise.all(state.messages.map((message) => caughtUp(person, message)));
  state.messages.sort((one, other) => one.seq - other.seq);
  state.conversation = await person.call("getChat", { chat_id });
  for (const account of state.conversation.participants) rename(state, account);
}

/** What streams grows without a change of its version: whoever was away asks for it again. */
const caughtUp = (person: Person, message: Message): Message | Promise<Message> =>
  message.finalized_at === null ? person.call("getMessage", { message_id: message.id }) : message;

/** A name is the account's, wherever it stands: the participants' names are the latest. */
function rename({ conversation, messages, changes }: View[string], account: Account): void {
  const named = [
    ...conversation.participants,
    conversation.created_by,
    ...messages.flatMap(namedIn),
    ...changes.flatMap(({ actor, subjects }) => [actor, ...subjects]),
  ];
  for (const one of named) {
    if (one.username === account.username) one.display_name = account.display_name;
  }
}

/** Everybody whose name stands in a message. */
export const namedIn = ({ sender, action, uses }: Message): Account[] => [
  sender,
  ...(action ? [action.by] : []),
  ...uses.map(({ by }) => by),
];

/** A view kept up to date by events alone, as a client would. */
export class LiveView {
  private readonly person: Person;
  readonly view: View;
  /** Counted events seen, to check that none was skipped or came twice. */
  private readonly counters = new Map<string, number>();
  /** Counters of the conversations that were fetched on the way. */
  private readonly fetched = new Map<string, number>();

  private constructor(person: Person, view: View) {
    this.person = person;
    this.view = view;
    for (const [id, { conversation }] of Object.entries(view)) {
      this.counters.set(id, conversation.seq);
      // One node may tell of a change before another has sent its event.
      if (onSeveralNodes) this.fetched.set(id, conversation.seq);
    }
  }

  static async load(person: Person): Promise<LiveView> {
    return new LiveView(person, await fetchView(person));
  }

  async apply(frame: EventFrame): Promise<void> {
    if (frame.at && frame.method !== "events.conversationNew" && !this.count(frame.at)) return;
    const handle = this.handlers[frame.method] as
      | ((params: unknown) => void | Promise<void>)
      | undefined;
    await handle?.(frame.params);
    const state = frame.at && this.view[frame.at.conversation_id];
    if (state && frame.at) {
      state.conversation.seq = Math.max(state.conversation.seq, frame.at.seq);
    }
  }

  /** Whether the event is news: what was fetched meanwhile holds its change already. */
  private count({ conversation_id, seq }: { conversation_id: string; seq: number }): boolean {
    if (seq <= (this.fetched.get(conversation_id) ?? 0)) return false;
    const before = this.counters.get(conversation_id);
    if (before !== undefined && seq !== before + 1) {
      throw new Error(`the counter of ${conversation_id} went from ${before} to ${seq}`);
    }
    this.counters.set(conversation_id, seq);
    this.counter = seq;
    return true;
  }

  private counter = 0;

  private readonly handlers: {
    [Name in EventName]?: (params: EventParams<Name>) => void | Promise<void>;
  } = {
    "events.conversationNew": async ({ id }) => {
      const fetched = await fetchConversation(this.person, id).catch(goneMeanwhile);
      if (!fetched) return;
      this.view[id] = fetched;
      this.counters.set(id, fetched.conversation.seq);
      this.fetched.set(id, fetched.conversation.seq);
    },
    "events.conversationUpdated": (shared) => this.conversationUpdated(shared),
    "events.messageNew": (message) => this.messageNew(message),
    "events.messageEdited": (message) => this.messageChanged(message),
    "events.messageComplete": (message) => {
      this.checkWhole(message);
      this.messageChanged(message);
    },
    "events.messageDelta": ({ id, delta, offset }) => this.grow(id, delta, offset),
    "events.messageDeleted": ({ conversation_id, ids }) => {
      this.dropMessages(conversation_id, new Set(ids));
    },
    "events.reactionAdded": ({ message_id, reactor, emoji }) => {
      this.react(message_id, reactor, emoji, 1);
    },
    "events.reactionRemoved": ({ message_id, reactor, emoji }) => {
      this.react(message_id, reactor, emoji, -1);
    },
    "events.chatRead": ({ conversation_id, reader, last_read_seq }) => {
      const state = this.view[conversation_id];
      if (state) this.read(state, reader.username, last_read_seq);
    },
    "events.accountUpdated": (account) => this.renameAll(account),
  };

  private isMe = (username: string) => username === this.person.username;

  private conversationUpdated(shared: ConversationUpdate): void {
    const state = this.view[shared.id];
    if (!state) return;
    const names = shared.participants.map(({ username }) => username);
    if (!names.some(this.isMe)) {
      delete this.view[shared.id];
      this.counters.delete(shared.id);
      return;
    }
    const { last_message: _, changes, ...rest } = shared;
    Object.assign(state.conversation, rest);
    state.changes.push(...changes);
    const { reads } = state.conversation;
    for (const name of Object.keys(reads)) if (!names.includes(name)) delete reads[name];
    // Whoever has just come has read up to where they came in.
    for (const { username, kind } of shared.participants) {
      if (kind === "human") reads[username] ??= shared.seq - 1;
    }
  }

  private messageNew(message: Message): void {
    const state = this.view[message.conversation_id];
    if (!state) return;
    state.messages.push(message);
    state.conversation.updated_at = message.created_at;
    if (message.sender.kind === "human") this.read(state, message.sender.username, message.seq);
    this.refresh(state);
  }

  private messageChanged(message: Message): void {
    const state = this.view[message.conversation_id];
    const place = state?.messages.findIndex(({ id }) => id === message.id) ?? -1;
    const old = state?.messages[place];
    if (!state || !old) return;
    const mine = new Set(old.reactions.filter(({ reacted }) => reacted).map(({ emoji }) => emoji));
    const reactions = message.reactions.map((each) => ({ ...each, reacted: mine.has(each.emoji) }));
    state.messages[place] = { ...message, reactions };
    this.refresh(state);
  }

  private find(messageId: string): Message | undefined {
    const states = Object.values(this.view);
    return states.flatMap(({ messages }) => messages).find(({ id }) => id === messageId);
  }

  /** Goes on exactly where the message ends; what was fetched meanwhile is passed over. */
  private grow(messageId: string, delta: string, offset: number): void {
    const message = this.find(messageId);
    const length = Buffer.byteLength(message?.content ?? "");
    if (!message || offset <= length) return;
    if (offset - Buffer.byteLength(delta) !== length) {
      throw new Error(`a delta up to ${offset} does not go on where ${length} bytes end`);
    }
    message.content += delta;
    const state = this.view[message.conversation_id];
    if (state) this.refresh(state);
  }

  /** The deltas are the content, byte for byte; without any it may be a sentence about a failure. */
  private checkWhole(message: Message): void {
    const streamed = this.find(message.id)?.content ?? "";
    if (streamed !== "" && streamed !== message.content) {
      throw new Error(`the deltas made "${streamed}", and the message says "${message.content}"`);
    }
  }

  private dropMessages(conversationId: string, ids: Set<string>): void {
    const state = this.view[conversationId];
    if (!state) return;
    state.messages = state.messages.filter(({ id }) => !ids.has(id));
    this.refresh(state);
  }

  private react(messageId: string, reactor: Account, emoji: string, step: 1 | -1): void {
    const message = this.find(messageId);
    if (!message) return;
    message.version = this.counter;
    const known = message.reactions.find((each) => each.emoji === emoji);
    const summary = known ?? { emoji, count: 0, reacted: false };
    if (!known) message.reactions.push(summary);
    summary.count += step;
    if (this.isMe(reactor.username)) summary.reacted = step === 1;
    message.reactions = message.reactions.filter(({ count }) => count > 0);
    const state = this.view[message.conversation_id];
    if (state) this.refresh(state);
  }

  private read(state: View[string], username: string, seq: number): void {
    const { reads } = state.conversation;
    const before = reads[username];
    if (before === undefined) return;
    reads[username] = Math.max(before, seq);
    if (this.isMe(username)) state.conversation.last_read_seq = reads[username];
    this.refresh(state);
  }

  private renameAll(account: Account): void {
    for (const state of Object.values(this.view)) {
      rename(state, account);
      this.refresh(state);
    }
  }

  /** What follows from the rest: the latest message and the unread figures. */
  private refresh({ conversation, messages }: View[string]): void {
    conversation.last_message = messages.at(-1) ?? null;
    const unread = messages.filter(({ seq }) => seq > conversation.last_read_seq);
    const by = (kind: string) => unread.filter(({ sender }) => sender.kind === kind).length;
    const mentions = unread.filter((message) => message.mentions.some(this.isMe)).length;
    conversation.unread = { human: by("human"), agent: by("agent"), mentions };
    conversation.unread_count = unread.length;
  }
}

/** Somebody who keeps a view by events alone while things happen. */
export class Watcher implements AsyncDisposable {
  readonly person: Person;
  readonly socket: Socket;
  private readonly live: LiveView;
  /** The view as it was at the start: what a client that was away since then holds. */
  private readonly before: View;
  private seen = 1;

  private constructor(person: Person, socket: Socket, live: LiveView) {
    this.person = person;
    this.socket = socket;
    this.live = live;
    this.before = structuredClone(live.view);
  }

  static async start(person: Person): Promise<Watcher> {
    const socket = await person.connect();
    return new Watcher(person, socket, await LiveView.load(person));
  }

  /** Whoever stayed, whoever was away and whoever comes anew must hold the same. */
  async check(): Promise<void> {
    await this.socket.settled();
    while (this.seen < this.socket.events.length) {
      const frame = this.socket.events[this.seen++];
      if (frame) await this.live.apply(structuredClone(frame));
    }
    const fresh = comparable(await fetchView(this.person));
    expect(comparable(this.live.view)).toEqual(fresh);
    expect(comparable(await catchUp(this.person, this.before))).toEqual(fresh);
  }

  [Symbol.asyncDispose]() {
    return this.socket[Symbol.asyncDispose]();
  }
}

/** Whoever is told of a conversation may have been removed from it before they look. */
function goneMeanwhile(error: unknown): null {
  if (error instanceof CallFailed && error.code === "forbidden") return null;
  throw error;
}

/** Reactions stand in the order of their first appearance, which a client that was away cannot know. */
export function comparable(view: View): View {
  const copy = structuredClone(view);
  const byEmoji = (one: { emoji: string }, other: { emoji: string }) =>
    one.emoji < other.emoji ? -1 : 1;
  for (const { conversation, messages } of Object.values(copy)) {
    for (const message of messages) message.reactions.sort(byEmoji);
    conversation.last_message?.reactions.sort(byEmoji);
  }
  return copy;
}
