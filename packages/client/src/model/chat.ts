import type {
  Account,
  Conversation,
  ConversationUpdate,
  EventFrame,
  Message,
  SharedConversation,
} from "@parley/protocol";
import type { LocalChat, LocalMessage } from "../types.ts";
import { asSent, changed, changedId } from "./message.ts";
import { type ChatState, loadedMessage } from "./state.ts";
import { share } from "./structural-sharing.ts";
import { onWindows, withoutMessages } from "./window.ts";

type Figures = Conversation["unread"];

export const NOTHING: Figures = { human: 0, agent: 0, mentions: 0 };

export const figures = (unread: Figures) => ({ unread, unread_count: unread.human + unread.agent });

export const withChat = (state: ChatState, chat: LocalChat): ChatState =>
  chat === state.chat ? state : { ...state, chat };

/** Events alone do not tell: the server is asked. */
export const doubtful = (state: ChatState): ChatState => ({ ...state, doubts: state.doubts + 1 });

/** The conversation after a counted event; as it was when something before the event is missing. */
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

function knownMessage(state: ChatState, id: string): Message | undefined {
  const last = state.chat.last_message;
  return last?.id === id ? last : loadedMessage(state, id);
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
  return onWindows({ ...state, gone }, (window) => withoutMessages(window, gone));
}

/** Hidden by the caller, who may know it before the counter that tells replies apart. */
export function hidden(
  state: ChatState,
  ids: readonly string[],
  me: string | undefined,
  own_seq = state.chat.own_seq,
): ChatState {
  const isNew = own_seq > state.chat.own_seq;
  const next = isNew ? withChat(state, { ...state.chat, own_seq }) : state;
  if (!ids.every((id) => state.gone.has(id))) return forgotten(discounted(next, ids, me), ids);
  // A reply from before may have brought back the figures meanwhile.
  return isNew ? doubtful(next) : next;
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

function withMembers(state: ChatState, shared: ConversationUpdate): ChatState {
  const { last_message: _, changes: __, ...rest } = shared;
  const before = state.chat;
  const isWhole = shared.participants.length === shared.participant_count;
  const participants = membersOf(state, shared);
  const positions = highest(state.positions, positionsOfNew(before, shared));
  const next = withPositions(withChat(state, { ...before, ...rest, participants }), positions);
  return isWhole ? next : doubtful(next);
}

/**
 * Lists and events show the first of a large group only. Where all are known already, they stay
 * until all are known again.
 */
export function membersOf(
  { chat, window }: ChatState,
  { participants, participant_count }: SharedConversation,
): Account[] {
  if (participants.length === participant_count || window === null) return participants;
  const shown = new Map(participants.map((account) => [account.username, account]));
  const known = chat.participants.map((account) => shown.get(account.username) ?? account);
  const names = new Set(known.map(({ username }) => username));
  return [...known, ...participants.filter(({ username }) => !names.has(username))];
}

type Positions = ChatState["positions"];

/** Whoever has just come has read up to where they came in. */
function positionsOfNew(before: LocalChat, { participants, seq }: SharedConversation): Positions {
  if (before.participants.length < before.participant_count) return {};
  const present = new Set(before.participants.map(({ username }) => username));
  const people = participants.filter(
    ({ kind, username }) => kind === "human" && !present.has(username),
  );
  return Object.fromEntries(people.map(({ username }) => [username, seq - 1]));
}

/** Read positions never move back. */
export function highest(known: Positions, heard: Positions): Positions {
  const higher = Object.entries(heard).filter(([username, seq]) => seq > (known[username] ?? -1));
  return higher.length === 0 ? known : { ...known, ...Object.fromEntries(higher) };
}

/** Shows the positions of those who take part. Of a large group it is not always known who does. */
export function withPositions(state: ChatState, positions: Positions): ChatState {
  const { participants, participant_count } = state.chat;
  const shown =
    participants.length < participant_count
      ? positions
      : Object.fromEntries(
          participants.flatMap(({ username }) => {
            const seq = positions[username];
            return seq === undefined ? [] : [[username, seq]];
          }),
        );
  const reads = share(state.chat.reads, shown);
  const next = positions === state.positions ? state : { ...state, positions };
  return reads === state.chat.reads ? next : withChat(next, { ...next.chat, reads });
}

/** Somebody has read up to a place: by saying so, or by writing there. */
export function withRead(
  state: ChatState,
  username: string,
  seq: number,
  me: string | undefined,
): ChatState {
  const moved = withPositions(state, highest(state.positions, { [username]: seq }));
  const { chat } = moved;
  if (username !== me || seq < chat.last_read_seq) return moved;
  const next = withChat(moved, { ...chat, last_read_seq: seq });
  if (chat.unread_count === 0) return next;
  if ((chat.last_message?.seq ?? 0) > seq) return doubtful(next);
  return withChat(next, { ...next.chat, ...figures(NOTHING) });
}
