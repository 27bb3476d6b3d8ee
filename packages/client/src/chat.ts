import type {
  Account,
  Conversation,
  ConversationDetail,
  EventFrame,
  Message,
  SharedConversation,
} from "@parley/protocol";
import { asSent, changed, changedId, later } from "./message.ts";
import { share } from "./share.ts";
import type { ChatState } from "./state.ts";
import type { LocalChat, LocalMessage } from "./types.ts";
import { withoutMessages } from "./window.ts";

export type Snapshot = Conversation | ConversationDetail;
type Figures = Conversation["unread"];

const NOTHING: Figures = { human: 0, agent: 0, mentions: 0 };

/** A conversation as the server has it, met with what is known of it. */
export function adopted(known: ChatState | undefined, snapshot: Snapshot): ChatState {
  if (!known) {
    const { reads = {} } = snapshot as Partial<ConversationDetail>;
    const last_message = snapshot.last_message && asSent(snapshot.last_message);
    return {
      chat: { ...snapshot, last_message, reads },
      window: null,
      heard: snapshot.seq,
      doubts: 0,
      answered: 0,
      gone: new Set(),
    };
  }
  const reads = readsOf(known.chat, snapshot);
  if (snapshot.seq < known.chat.seq) {
    return withChat(known, share(known.chat, { ...known.chat, reads }));
  }
  const participants = participantsOf(known.chat, snapshot);
  const chat = { ...snapshot, ...mineIn(known, snapshot), participants, reads };
  const met = withChat(known, share<LocalChat>(known.chat, chat));
  const heard = Math.max(known.heard, snapshot.seq);
  const next = named({ ...met, heard }, participants);
  return isCertain(next, snapshot) ? next : doubtful(next);
}

/** Not if it was on its way while its latest message was hidden, or shows some of the members only. */
function isCertain({ window, gone, chat }: ChatState, { last_message }: Snapshot): boolean {
  const isWhole = window === null || chat.participants.length >= chat.participant_count;
  return isWhole && !(last_message && gone.has(last_message.id));
}

/** The caller's own figures. What was read here and is not known there yet stays read. */
function mineIn({ chat, window, gone }: ChatState, snapshot: Snapshot) {
  const fetched = snapshot.last_message;
  const isGone = fetched !== null && gone.has(fetched.id);
  const last_message = isGone ? (window?.items.at(-1) ?? null) : lastOf(chat, fetched);
  const last_read_seq = Math.max(chat.last_read_seq, snapshot.last_read_seq);
  const isRead = last_read_seq > snapshot.last_read_seq && (fetched?.seq ?? 0) <= last_read_seq;
  return { last_message, last_read_seq, ...(isRead && figures(NOTHING)) };
}

function lastOf({ last_message: known }: LocalChat, fetched: Message | null): LocalMessage | null {
  if (!fetched) return null;
  return known?.id === fetched.id ? later(asSent(known), fetched) : asSent(fetched);
}

/** Lists show the first of a large group only: nobody who is known is forgotten for that. */
function participantsOf(known: LocalChat, { seq, participants, participant_count }: Snapshot) {
  const isWhole = participants.length === participant_count;
  if (isWhole || seq > known.seq) return participants;
  const names = new Map(participants.map((account) => [account.username, account]));
  return known.participants.map((account) => names.get(account.username) ?? account);
}

function readsOf(known: LocalChat, snapshot: Snapshot): LocalChat["reads"] {
  const { reads = {} } = snapshot as Partial<ConversationDetail>;
  const merged: Record<string, number> = { ...known.reads };
  for (const [username, seq] of Object.entries(reads)) {
    merged[username] = Math.max(merged[username] ?? 0, seq);
  }
  const { participants, participant_count } = snapshot.seq < known.seq ? known : snapshot;
  if (participants.length < participant_count) return merged;
  const present = new Set(participants.map(({ username }) => username));
  return Object.fromEntries(Object.entries(merged).filter(([username]) => present.has(username)));
}

const figures = (unread: Figures) => ({ unread, unread_count: unread.human + unread.agent });

const withChat = (state: ChatState, chat: LocalChat): ChatState =>
  chat === state.chat ? state : { ...state, chat };

const doubtful = (state: ChatState): ChatState => ({ ...state, doubts: state.doubts + 1 });

/** What `change` makes of it, if it is the next change of the conversation. */
export function chatAfter(state: ChatState, frame: EventFrame, me: string | undefined): ChatState {
  const seq = frame.at?.seq ?? 0;
  if (seq !== state.chat.seq + 1) return state;
  const next = withEvent(state, frame, me);
  return withChat(next, { ...next.chat, seq });
}

function withEvent(state: ChatState, frame: EventFrame, me: string | undefined): ChatState {
  switch (frame.method) {
    case "events.messageNew":
      return withNew(state, frame.params, me);
    case "events.messageEdited":
    case "events.messageComplete":
      return withMentions(withLast(state, frame, me), frame, state, me);
    case "events.reactionAdded":
    case "events.reactionRemoved":
      return withLast(state, frame, me);
    case "events.messageDeleted":
      return discounted(state, frame.params.ids, me);
    case "events.conversationUpdated":
      return withMembers(state, frame.params);
    default:
      return state;
  }
}

/** Counted as the server does: reading is by place, sending reads up to what was sent. */
function withNew(state: ChatState, message: Message, me: string | undefined): ChatState {
  const { sender, seq, created_at } = message;
  const isRead = sender.username === me || seq <= state.chat.last_read_seq;
  const unread = isRead ? state.chat.unread : plus(state.chat.unread, message, me, 1);
  const chat = {
    ...state.chat,
    ...figures(unread),
    last_message: state.gone.has(message.id) ? state.chat.last_message : asSent(message),
    updated_at: created_at,
  };
  const next = withChat(state, chat);
  return sender.kind === "human" ? withRead(next, sender.username, seq, me) : next;
}

const mentions = (message: Message, me: string | undefined): boolean =>
  me !== undefined && message.mentions.includes(me);

function plus(unread: Figures, message: Message, me: string | undefined, step: 1 | -1): Figures {
  const { kind } = message.sender;
  const mentioned = mentions(message, me) ? step : 0;
  return { ...unread, [kind]: unread[kind] + step, mentions: unread.mentions + mentioned };
}

type ChangeEvent = Parameters<typeof changed>[1];

function withLast(state: ChatState, frame: ChangeEvent, me: string | undefined): ChatState {
  const last = state.chat.last_message as LocalMessage | null;
  if (last?.id !== changedId(frame)) return state;
  return withChat(state, { ...state.chat, last_message: changed(last, frame, me) });
}

/** Who is mentioned in an unread message may have changed with its content. */
function withMentions(
  state: ChatState,
  frame: EventFrame<"events.messageEdited" | "events.messageComplete">,
  before: ChatState,
  me: string | undefined,
): ChatState {
  const message = frame.params;
  if (message.seq <= state.chat.last_read_seq || before.gone.has(message.id)) return state;
  const isNew = mentions(message, me);
  const old = knownMessage(before, message.id);
  // A message that streams mentions nobody yet. Of any other that is not known, nobody can say.
  if (!old && frame.method === "events.messageEdited") return doubtful(state);
  const step = Number(isNew) - Number(old ? mentions(old, me) : false);
  if (step === 0) return state;
  const unread = { ...state.chat.unread, mentions: state.chat.unread.mentions + step };
  return withChat(state, { ...state.chat, ...figures(unread) });
}

function knownMessage({ chat, window }: ChatState, id: string): Message | undefined {
  if (chat.last_message?.id === id) return chat.last_message;
  return window?.items.findLast((message) => message.id === id);
}

/** The conversation's figures and latest message without some messages. */
function discounted(state: ChatState, ids: readonly string[], me: string | undefined): ChatState {
  const news = ids.filter((id) => !state.gone.has(id));
  return lastWithout(figuresWithout(state, news, me), news);
}

/** Deleted for everyone: counted or not, they do not come back. */
export function forgotten(state: ChatState, ids: readonly string[]): ChatState {
  if (ids.every((id) => state.gone.has(id))) return state;
  const gone = new Set([...state.gone, ...ids]);
  return { ...state, gone, window: state.window && withoutMessages(state.window, gone) };
}

/** Hidden by the caller: no counter tells whether a snapshot on its way knows of it. */
export function hidden(
  state: ChatState,
  ids: readonly string[],
  me: string | undefined,
): ChatState {
  if (ids.every((id) => state.gone.has(id))) return state;
  const next = discounted(state, ids, me);
  const isFelt = next.chat !== state.chat;
  return forgotten(isFelt ? doubtful(next) : next, ids);
}

function figuresWithout(
  state: ChatState,
  ids: readonly string[],
  me: string | undefined,
): ChatState {
  const { chat } = state;
  if (chat.unread_count === 0 || ids.length === 0) return state;
  const messages = ids.map((id) => knownMessage(state, id));
  if (messages.includes(undefined)) return doubtful(state);
  const unread = messages
    .filter((message) => message !== undefined)
    .filter(({ seq }) => seq > chat.last_read_seq && seq <= chat.seq)
    .reduce((sum, message) => plus(sum, message, me, -1), chat.unread);
  return withChat(state, share(chat, { ...chat, ...figures(unread) }));
}

function lastWithout(state: ChatState, ids: readonly string[]): ChatState {
  const { chat, window } = state;
  if (!chat.last_message || !ids.includes(chat.last_message.id)) return state;
  const last_message = window?.items.findLast(({ id }) => !ids.includes(id)) ?? null;
  const next = withChat(state, { ...chat, last_message });
  // Whether it is the latest is certain only if the window is complete up to here.
  const isSure = window !== null && (last_message !== null || window.floor === null);
  return isSure && window.seq >= chat.seq ? next : doubtful(next);
}

function withMembers(state: ChatState, shared: SharedConversation): ChatState {
  const { last_message: _, ...rest } = shared;
  const before = state.chat;
  const isWhole = shared.participants.length === shared.participant_count;
  const reads = isWhole ? readsAmong(before, shared) : before.reads;
  const next = named(withChat(state, { ...before, ...rest, reads }), shared.participants);
  return isWhole ? next : doubtful(next);
}

/** Whoever has just come has read up to where they came in. */
function readsAmong(before: LocalChat, { participants, seq }: SharedConversation) {
  const present = new Set(before.participants.map(({ username }) => username));
  const isNew = (username: string) =>
    before.participants.length === before.participant_count && !present.has(username);
  const reads: Record<string, number> = {};
  for (const { username, kind } of participants) {
    const read = isNew(username) ? seq - 1 : before.reads[username];
    if (kind === "human" && read !== undefined) reads[username] = read;
  }
  return reads;
}

/** Somebody has read up to a place: by saying so, or by writing there. */
export function withRead(
  state: ChatState,
  username: string,
  seq: number,
  me: string | undefined,
): ChatState {
  const { chat } = state;
  const before = chat.reads[username] ?? 0;
  const reads = seq > before ? { ...chat.reads, [username]: seq } : chat.reads;
  if (username !== me || seq < chat.last_read_seq) {
    return reads === chat.reads ? state : withChat(state, { ...chat, reads });
  }
  const next = withChat(state, { ...chat, reads, last_read_seq: seq });
  if (chat.unread_count === 0) return next;
  if ((chat.last_message?.seq ?? 0) > seq) return doubtful(next);
  return withChat(next, { ...next.chat, ...figures(NOTHING) });
}

/** The message under its sender's latest name; an event may have been made just before a change of name. */
export function signedAsNow<Known extends Message>({ chat }: ChatState, message: Known): Known {
  const { sender } = message;
  const now = chat.participants.find(({ username }) => username === sender.username);
  if (!now || now.display_name === sender.display_name) return message;
  return { ...message, sender: { ...sender, display_name: now.display_name } };
}

/** A name is the account's, wherever it stands. */
export function named(state: ChatState, accounts: readonly Account[]): ChatState {
  const names = new Map(accounts.map(({ username, display_name }) => [username, display_name]));
  const rename = <Named extends Account>(account: Named): Named => {
    const display_name = names.get(account.username) ?? account.display_name;
    return display_name === account.display_name ? account : { ...account, display_name };
  };
  const { chat, window } = state;
  const message = <Known extends Message>(one: Known): Known => {
    const sender = rename(one.sender);
    return sender === one.sender ? one : { ...one, sender };
  };
  const renamed = share(chat, {
    ...chat,
    participants: chat.participants.map(rename),
    created_by: rename(chat.created_by),
    last_message: chat.last_message && message(chat.last_message),
  });
  const items = window && share(window.items, window.items.map(message));
  return {
    ...withChat(state, renamed),
    window: window && items && items !== window.items ? { ...window, items } : window,
  };
}
