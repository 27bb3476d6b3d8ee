import type { LocalMessage } from "../types.ts";
import { failUnsent, removeArrived } from "./outbox.ts";
import type { ChatState, State } from "./state.ts";
import { setEntry, share } from "./structural-sharing.ts";
import { mapMessage, updateWindows } from "./window.ts";

/** Why unsent messages of a conversation that the caller is no longer in are failed. */
const NO_LONGER_PARTICIPANT = "you are no longer part of this conversation";

/** Changes a conversation, if it is known. */
export function updateChat(
  state: State,
  id: string,
  change: (chat: ChatState) => ChatState,
): State {
  const chat = state.chats[id];
  return chat ? putChat(state, id, change(chat)) : state;
}

/** Stores a conversation and updates what is derived from it: outbox, list order and unread totals. */
export function putChat(state: State, id: string, chat: ChatState): State {
  const before = state.chats[id];
  if (chat === before) return state;
  const chats = setEntry(state.chats, id, chat);
  const next = { ...state, chats };
  const isMoved =
    before?.chat.updated_at !== chat.chat.updated_at || before.isListed !== chat.isListed;
  return {
    ...next,
    outbox: removeArrived(next, id),
    order: isMoved ? sortChats(chats) : state.order,
    unread:
      before?.chat.unread === chat.chat.unread ? state.unread : sumUnread(chats, state.unread),
  };
}

/**
 * Removes a conversation. Its counter stays in `left`, so that late replies do not bring it back, and
 * its unsent messages stay as failed, so that their text is not lost.
 */
export function removeChat(state: State, id: string, seq?: number): State {
  const chat = state.chats[id];
  const at = seq ?? (chat ? chat.chat.seq + 1 : 0);
  const chats = setEntry(state.chats, id, undefined);
  return {
    ...state,
    chats,
    left: setEntry(state.left, id, Math.max(at, state.left[id] ?? 0)),
    order: state.order.filter((each) => each !== id),
    unread: sumUnread(chats, state.unread),
    typing: setEntry(state.typing, id, undefined),
    outbox: failUnsent(state.outbox, id, NO_LONGER_PARTICIPANT),
    optimisticChanges: setEntry(state.optimisticChanges, id, undefined),
    unconfirmedReads: setEntry(state.unconfirmedReads, id, undefined),
  };
}

function sortChats(chats: State["chats"]): readonly string[] {
  const latestFirst = ({ chat: one }: ChatState, { chat: other }: ChatState) =>
    compare(other.updated_at, one.updated_at) || compare(other.id, one.id);
  return Object.values(chats)
    .filter(({ isListed }) => isListed)
    .toSorted(latestFirst)
    .map(({ chat }) => chat.id);
}

const compare = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);

function sumUnread(chats: State["chats"], before: State["unread"]): State["unread"] {
  const sum = { human: 0, agent: 0, mentions: 0 };
  for (const { chat } of Object.values(chats)) {
    sum.human += chat.unread.human;
    sum.agent += chat.unread.agent;
    sum.mentions += chat.unread.mentions;
  }
  return share(before, sum);
}

/** Changes a message in the windows and as the latest message of its conversation. */
export function updateMessage(
  state: State,
  chatId: string,
  id: string,
  change: (message: LocalMessage) => LocalMessage,
): State {
  return updateChat(state, chatId, (before) => {
    const last = before.chat.last_message as LocalMessage | null;
    const last_message = last?.id === id ? change(last) : last;
    const next = updateWindows(before, (window) => mapMessage(window, id, change));
    return last_message === last ? next : { ...next, chat: { ...next.chat, last_message } };
  });
}
