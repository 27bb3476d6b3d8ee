import type { LocalMessage } from "../types.ts";
import { withoutArrived } from "./outbox.ts";
import type { ChatState, State } from "./state.ts";
import { put, share } from "./structural-sharing.ts";
import { mapMessage, onWindows } from "./window.ts";

/** Changes a conversation, if it is known. */
export function onChat(state: State, id: string, change: (chat: ChatState) => ChatState): State {
  const chat = state.chats[id];
  return chat ? placed(state, id, change(chat)) : state;
}

/** Everything that follows from a conversation's new state. */
export function placed(state: State, id: string, chat: ChatState): State {
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

/** Without a conversation, of which answers may still be on their way. */
export function withoutChat(state: State, id: string, seq?: number): State {
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
    reading: put(state.reading, id, undefined),
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

/** Changes a message wherever it is shown. */
export function onMessage(
  state: State,
  chatId: string,
  id: string,
  change: (message: LocalMessage) => LocalMessage,
): State {
  return onChat(state, chatId, (before) => {
    const last = before.chat.last_message as LocalMessage | null;
    const last_message = last?.id === id ? change(last) : last;
    const next = onWindows(before, (window) => mapMessage(window, id, change));
    return last_message === last ? next : { ...next, chat: { ...next.chat, last_message } };
  });
}
