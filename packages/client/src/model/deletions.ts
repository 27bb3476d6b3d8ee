import { invalidate, setChat } from "./chat.ts";
import type { ChatState } from "./state.ts";
import { subtractUnread, type Viewer } from "./unread.ts";
import { removeMessages, updateWindows } from "./window.ts";

/** Drops deleted messages from the windows, and keeps their ids as tombstones. */
export function dropMessages(state: ChatState, ids: readonly string[]): ChatState {
  if (ids.every((id) => state.tombstones.has(id))) return state;
  const tombstones = new Set([...state.tombstones, ...ids]);
  return updateWindows({ ...state, tombstones }, (window) => removeMessages(window, tombstones));
}

/**
 * Removes messages that the caller deleted for themselves. The reply to the caller's own call comes
 * without `own_seq`; the event follows with it.
 */
export function hideMessages(
  state: ChatState,
  ids: readonly string[],
  viewer: Viewer,
  own_seq = state.chat.own_seq,
): ChatState {
  const isNew = own_seq > state.chat.own_seq;
  const next = isNew ? setChat(state, { ...state.chat, own_seq }) : state;
  if (!ids.every((id) => state.tombstones.has(id))) {
    return dropMessages(uncountMessages(next, ids, viewer), ids);
  }
  // An older reply may have restored the unread counts in between.
  return isNew ? invalidate(next) : next;
}

/** Updates the unread counts and the latest message when messages are deleted. */
export function uncountMessages(
  state: ChatState,
  ids: readonly string[],
  viewer: Viewer,
): ChatState {
  const added = ids.filter((id) => !state.tombstones.has(id));
  return replaceLast(subtractUnread(state, added, viewer), added);
}

function replaceLast(state: ChatState, ids: readonly string[]): ChatState {
  const { chat, window } = state;
  if (!chat.last_message || !ids.includes(chat.last_message.id)) return state;
  const last_message = window?.items.findLast(({ id }) => !ids.includes(id)) ?? null;
  const next = setChat(state, { ...chat, last_message });
  // The latest message of the window is that of the conversation only if the window is current.
  const isFound = window !== null && (last_message !== null || window.floor === null);
  return isFound && window.seq >= chat.seq ? next : invalidate(next);
}
