import type { Message } from "@parley/protocol";
import type { ActionOf, Overview } from "./actions.ts";
import { invalidate } from "./chat.ts";
import { putChat, updateChat, updateMessage } from "./chats.ts";
import { dropMessages, hideMessages } from "./deletions.ts";
import { applyBlocked } from "./events.ts";
import { newerMessage } from "./message.ts";
import { applyView, list, withoutCleared, withUnconfirmed } from "./own-view.ts";
import { mergeSnapshot, type Snapshot } from "./snapshot.ts";
import type { ChatState, State } from "./state.ts";
import { viewerOf } from "./unread.ts";
import {
  addChanges,
  addMessages,
  createAside,
  createWindow,
  extendNewer,
  extendOlder,
  joinAside,
  updateWindows,
} from "./window.ts";

/** When a reply was requested, and whether it is a part of the list. */
type Reply = Pick<ActionOf<"snapshots">, "validates" | "moves" | "listed">;

/** Applies a conversation from a reply. */
export function applySnapshot(
  state: State,
  snapshot: Snapshot,
  { validates = 0, moves, listed }: Reply = {},
): State {
  const { id, seq } = snapshot;
  if (seq < (state.left[id] ?? 0)) return state;
  const known = state.chats[id];
  const authoritative =
    !(id in state.unconfirmedReads) &&
    moves !== undefined &&
    moves === known?.moves &&
    validates >= known.invalidations;
  const merged = known
    ? mergeSnapshot(known, snapshot, authoritative)
    : firstSnapshot(state, snapshot);
  const chat = listed ? list(merged) : merged;
  // A reply that is older than an event that came before it determines nothing.
  const validated = seq < chat.chat.seq ? chat.validated : Math.max(chat.validated, validates);
  return putChat(state, id, validated === chat.validated ? chat : { ...chat, validated });
}

/** Events may have arrived before the conversation was known. */
function firstSnapshot(state: State, snapshot: Snapshot): ChatState {
  const made = mergeSnapshot(undefined, snapshot);
  const chat = state.news[snapshot.id] ? list(made) : made;
  const highestSeq = Math.max(snapshot.seq, state.highestSeqs[snapshot.id] ?? 0);
  const isOlder = snapshot.own_seq < state.own.highest;
  return { ...(isOlder ? invalidate(chat) : chat), highestSeq };
}

/** Applies the part of `getUpdates` that is about all conversations. */
export function applyOverview(state: State, page: Overview): State {
  const { accounts_seq, own_seq } = page;
  const higher = (known: number | null, fetched = known) =>
    fetched === null ? null : Math.max(known ?? 0, fetched);
  const seq = higher(state.own.seq, own_seq);
  const own = { seq, highest: Math.max(state.own.highest, seq ?? 0) };
  const accountsSeq = higher(state.accountsSeq, accounts_seq);
  const next = (page.hidden ?? []).reduce(
    (next, { conversation_id, ids }) =>
      updateChat(next, conversation_id, (chat) =>
        hideMessages(chat, ids, viewerOf(state), own_seq),
      ),
    applyBlocked({ ...state, accountsSeq, own }, page.blocked),
  );
  return (page.states ?? []).reduce(
    (each, view) =>
      updateChat(each, view.conversation_id, (chat) =>
        applyView(chat, withUnconfirmed(state, view), own_seq ?? 0),
      ),
    next,
  );
}

/** Applies the part of `getUpdates` that is about one conversation. */
export function applyUpdates(state: State, { chatId, page, since }: ActionOf<"updates">): State {
  const next = updateChat(state, chatId, (chat) => {
    const found = withoutCleared(chat, { ...page, items: page.messages });
    const isNew = ({ version, seq }: Message) => version === seq;
    const added = found.items.filter(isNew).length + (found.changes?.length ?? 0);
    // Nothing that was cleared is among the deleted messages.
    const hasNews = added + page.deleted_ids.length > 0;
    const shown = hasNews ? list(chat) : chat;
    if (!shown.window) return shown;
    const kept = dropMessages(shown, page.deleted_ids);
    return updateWindows(kept, (window) => {
      const added = addMessages(window, found.items, kept.tombstones);
      const after = addChanges(added, found.changes);
      // A page loaded in the meantime may lack changes from before `since`.
      return after.seq < since ? after : { ...after, seq: Math.max(after.seq, page.seq) };
    });
  });
  return applySnapshot(next, { ...page.conversation, reads: page.reads ?? {} });
}

/** Applies a page of the latest messages, or the page before those loaded. */
export function applyMessagePage(state: State, action: ActionOf<"messagePage">): State {
  const { page, since: seq, before } = action;
  return updateChat(state, action.chatId, (chat) => {
    const { window, tombstones } = chat;
    const isExpected = before === undefined ? window === null : window?.floor?.id === before;
    if (!isExpected) return chat;
    const context = { tombstones, seq };
    const found = withoutCleared(chat, page);
    const next = window ? extendOlder(window, found, context) : createWindow(found, context);
    return joinAside({ ...chat, window: next });
  });
}

/** Applies a page around a message, or one next to those around it. */
export function applyAside(state: State, action: ActionOf<"aside">): State {
  const { page, since: seq, from } = action;
  return updateChat(state, action.chatId, (chat) => {
    const { aside: before, tombstones } = chat;
    const edge = from?.direction === "older" ? before?.floor : before?.ceiling;
    if (from && edge?.id !== from.id) return chat;
    const extend = from?.direction === "older" ? extendOlder : extendNewer;
    const context = { tombstones, seq };
    const found = withoutCleared(chat, page);
    const aside = from && before ? extend(before, found, context) : createAside(found, context);
    return joinAside({ ...chat, aside });
  });
}

/** Applies a message from a reply. */
export function applyMessage(state: State, message: Message): State {
  const { id, conversation_id } = message;
  return updateMessage(state, conversation_id, id, (known) => newerMessage(known, message));
}
