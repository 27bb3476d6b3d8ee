import type { Account, AgentProfile, EventFrame, Message, OutputOf } from "@parley/protocol";
import {
  adopted,
  chatAfter,
  forgotten,
  hidden,
  named,
  type Snapshot,
  signedAsNow,
  withRead,
} from "./chat.ts";
import { later } from "./message.ts";
import { type OutboxAction, reduceOutbox, signed, withoutArrived } from "./pending.ts";
import { put, share } from "./share.ts";
import { type ChatState, initialState, type State } from "./state.ts";
import { append, type Delta } from "./stream.ts";
import type { LocalMessage, Status } from "./types.ts";
import { typingAfter, withoutTyping } from "./typing.ts";
import {
  type HistoryPage,
  mapMessage,
  openedWindow,
  windowAfter,
  withMessages,
  withOlder,
} from "./window.ts";

type UpdatesPage = Extract<OutputOf<"getUpdates">, { messages: unknown }>;

export type Action =
  | { type: "status"; status: Status }
  | { type: "me"; me: Account }
  | { type: "event"; frame: EventFrame }
  /** Conversations as the server has them; `answers` are the doubts when they were asked for. */
  | { type: "snapshots"; snapshots: readonly Snapshot[]; answers?: number }
  | { type: "updates"; chatId: string; page: UpdatesPage }
  /** A page of messages; `since` is the counter when it was asked for. */
  | { type: "history"; chatId: string; page: HistoryPage; since: number; before?: string }
  | { type: "message"; message: Message }
  | { type: "chatGone"; chatId: string; seq?: number }
  | { type: "messagesGone"; chatId: string; ids: readonly string[] }
  | { type: "read"; chatId: string; seq: number }
  | { type: "typingEnded"; chatId?: string; username?: string }
  | { type: "agents"; agents: readonly AgentProfile[] }
  | { type: "drafts"; drafts: Readonly<Record<string, string>> }
  | { type: "reset"; status: Status }
  | OutboxAction;

/** The live model: what is known, and what comes of it when something is heard or done. */
export function reduce(state: State, action: Action): State {
  return released(step(state, action));
}

function step(state: State, action: Action): State {
  switch (action.type) {
    case "status":
      return { ...state, status: action.status };
    case "me":
      return identified(state, action.me);
    case "event":
      return eventReduced(state, action.frame);
    case "snapshots":
      return action.snapshots.reduce((next, each) => known(next, each, action.answers), state);
    case "updates":
      return updated(state, action.chatId, action.page);
    case "history":
      return loaded(state, action);
    case "message":
      return fetched(state, action.message);
    case "chatGone":
      return gone(state, action.chatId, action.seq);
    case "messagesGone":
      return onChat(state, action.chatId, (chat) => hidden(chat, action.ids, name(state)));
    case "read":
      return onChat(state, action.chatId, (chat) =>
        withRead(chat, name(state) ?? "", action.seq, name(state)),
      );
    case "typingEnded":
      return { ...state, typing: withoutTyping(state.typing, action) };
    case "agents":
      return { ...state, agents: share(state.agents, action.agents) };
    case "drafts":
      return { ...state, drafts: action.drafts };
    case "reset":
      return initialState(action.status);
    default:
      return reduceOutbox(state, action);
  }
}

const identified = (state: State, me: Account): State => ({
  ...state,
  me: share(state.me ?? undefined, me),
  outbox: signed(state.outbox, me),
});

const name = ({ me }: State) => me?.username;

function onChat(state: State, id: string, change: (chat: ChatState) => ChatState): State {
  const chat = state.chats[id];
  return chat ? placed(state, id, change(chat)) : state;
}

/** Everything that follows from a conversation's new state. */
function placed(state: State, id: string, chat: ChatState): State {
  const before = state.chats[id];
  if (chat === before) return state;
  const chats = put(state.chats, id, chat);
  const next = { ...state, chats };
  const moved = before?.chat.updated_at !== chat.chat.updated_at;
  return {
    ...next,
    outbox: withoutArrived(next, id),
    order: moved ? ordered(chats) : state.order,
    unread: before?.chat.unread === chat.chat.unread ? state.unread : unreadIn(chats, state.unread),
  };
}

function gone(state: State, id: string, seq?: number): State {
  const chat = state.chats[id];
  const at = seq ?? (chat ? chat.chat.seq + 1 : 0);
  const chats = put(state.chats, id, undefined);
  return {
    ...state,
    chats,
    left: put(state.left, id, Math.max(at, state.left[id] ?? 0)),
    order: state.order.filter((each) => each !== id),
    unread: unreadIn(chats, state.unread),
    typing: put(state.typing, id, undefined),
    outbox: put(state.outbox, id, undefined),
    changes: put(state.changes, id, undefined),
  };
}

function ordered(chats: State["chats"]): readonly string[] {
  const latestFirst = ({ chat: one }: ChatState, { chat: other }: ChatState) =>
    compare(other.updated_at, one.updated_at) || compare(other.id, one.id);
  return Object.values(chats)
    .toSorted(latestFirst)
    .map(({ chat }) => chat.id);
}

const compare = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);

function unreadIn(chats: State["chats"], before: State["unread"]): State["unread"] {
  const sum = { human: 0, agent: 0, mentions: 0 };
  for (const { chat } of Object.values(chats)) {
    sum.human += chat.unread.human;
    sum.agent += chat.unread.agent;
    sum.mentions += chat.unread.mentions;
  }
  return share(before, sum);
}

function eventReduced(state: State, frame: EventFrame): State {
  switch (frame.method) {
    case "events.hello":
      return identified(state, frame.params);
    case "events.messageDelta":
      return streamed(state, frame.params.id, [frame.params]);
    case "events.accountUpdated":
      return renamed(state, frame.params);
    case "events.typing":
      return { ...state, typing: typingAfter(state, frame) };
    case "events.chatRead": {
      const { conversation_id, reader, last_read_seq } = frame.params;
      return onChat(state, conversation_id, (chat) =>
        withRead(chat, reader.username, last_read_seq, name(state)),
      );
    }
    default:
      return counted(state, frame);
  }
}

function counted(state: State, given: EventFrame): State {
  if (given.method === "events.messageDeleted" && !given.at) {
    const { conversation_id, ids } = given.params;
    return onChat(state, conversation_id, (chat) => hidden(chat, ids, name(state)));
  }
  if (!given.at) return state;
  const { conversation_id, seq } = given.at;
  if (isRemoval(given, name(state))) return gone(state, conversation_id, seq);
  const heard = put(state.heard, conversation_id, Math.max(seq, state.heard[conversation_id] ?? 0));
  const next = onChat({ ...state, heard }, conversation_id, (chat) => {
    const frame = signedEvent(chat, given);
    const after = chatAfter(chat, frame, name(state));
    const window = windowAfter(after, frame, name(state));
    const moved = { ...after, window, heard: Math.max(chat.heard, seq) };
    return frame.method === "events.messageDeleted" ? forgotten(moved, frame.params.ids) : moved;
  });
  return { ...next, typing: typingAfter(next, given) };
}

function signedEvent(chat: ChatState, frame: EventFrame): EventFrame {
  const isMessage = "sender" in frame.params;
  if (!isMessage) return frame;
  return { ...frame, params: signedAsNow(chat, frame.params as Message) } as EventFrame;
}

/** The caller is no longer among the members, all of whom are shown. */
function isRemoval(frame: EventFrame, me: string | undefined): boolean {
  if (frame.method !== "events.conversationUpdated") return false;
  const { participants, participant_count } = frame.params;
  return (
    participants.length === participant_count &&
    !participants.some(({ username }) => username === me)
  );
}

function renamed(state: State, account: Account): State {
  const me = state.me?.username === account.username ? account : state.me;
  const agents = state.agents.map((agent) =>
    agent.username === account.username ? { ...agent, display_name: account.display_name } : agent,
  );
  const next = { ...state, me, agents: share(state.agents, agents) };
  return Object.keys(state.chats).reduce(
    (each, id) => onChat(each, id, (chat) => named(chat, [account])),
    next,
  );
}

function known(state: State, snapshot: Snapshot, answers?: number): State {
  const { id, seq } = snapshot;
  if (seq < (state.left[id] ?? 0)) return state;
  const met = adopted(state.chats[id], snapshot);
  const chat = state.chats[id] ? met : { ...met, heard: Math.max(seq, state.heard[id] ?? 0) };
  const answered = Math.max(chat.answered, answers ?? 0);
  return placed(state, id, answered === chat.answered ? chat : { ...chat, answered });
}

function updated(state: State, chatId: string, page: UpdatesPage): State {
  const next = onChat(state, chatId, (chat) => {
    if (!chat.window) return chat;
    const kept = forgotten(chat, page.deleted_ids);
    const window = kept.window && withMessages(kept.window, page.messages, kept.gone);
    return { ...kept, window: window && { ...window, seq: Math.max(window.seq, page.seq) } };
  });
  const met = known(next, page.conversation);
  return onChat(met, chatId, (chat) => named(chat, chat.chat.participants));
}

function loaded(state: State, action: Extract<Action, { type: "history" }>): State {
  const { page, since, before } = action;
  return onChat(state, action.chatId, (chat) => {
    const { window, gone } = chat;
    const isNext = before === undefined ? window === null : window?.floor?.id === before;
    if (!isNext) return chat;
    const next = window ? withOlder(window, page, gone, since) : openedWindow(page, gone, since);
    return named({ ...chat, window: next }, chat.chat.participants);
  });
}

function fetched(state: State, message: Message): State {
  const chat = state.chats[message.conversation_id];
  if (!chat) return state;
  const signedMessage = signedAsNow(chat, message);
  return onMessage(state, chat.chat.id, message.id, (known) => later(known, signedMessage));
}

/** Changes a message wherever it is shown. */
function onMessage(
  state: State,
  chatId: string,
  id: string,
  change: (message: LocalMessage) => LocalMessage,
): State {
  return onChat(state, chatId, ({ window, chat, ...rest }) => {
    const last = chat.last_message as LocalMessage | null;
    const last_message = last?.id === id ? change(last) : last;
    return {
      ...rest,
      window: window && mapMessage(window, id, change),
      chat: last_message === last ? chat : { ...chat, last_message },
    };
  });
}

function streamed(state: State, id: string, deltas: readonly Delta[]): State {
  const chatId = streamingChat(state, id);
  let early: readonly Delta[] = [];
  const next =
    chatId === undefined
      ? state
      : onMessage(state, chatId, id, (message) => {
          if (message.finalized_at !== null) return message;
          const appended = append(message, deltas);
          early = appended.early.length > early.length ? appended.early : early;
          return appended.message;
        });
  if (early.length === 0) return state.early[id] ? without(next, id) : next;
  const waiting = new Map(
    [...(state.early[id] ?? []), ...early].map((each) => [each.offset, each]),
  );
  return { ...next, early: put(next.early, id, [...waiting.values()]) };
}

const without = (state: State, id: string): State => ({
  ...state,
  early: put(state.early, id, undefined),
});

/** Chunks that came too early are appended as soon as what was missing is there. */
function released(state: State): State {
  return Object.entries(state.early).reduce((next, [id, deltas]) => {
    const after = streamed(without(next, id), id, deltas);
    return after.early[id]?.length === deltas.length ? next : after;
  }, state);
}

function streamingChat(state: State, id: string): string | undefined {
  const holds = ({ chat, window }: ChatState) =>
    chat.last_message?.id === id || window?.items.findLast((message) => message.id === id);
  return Object.values(state.chats).find(holds)?.chat.id;
}
