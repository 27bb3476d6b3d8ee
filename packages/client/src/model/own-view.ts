import type { EventParams, ChatState as OwnView } from "@parley/protocol";
import { invalidate, setChat } from "./chat.ts";
import { removeChat, updateChat } from "./chats.ts";
import { dropMessages } from "./deletions.ts";
import type { ChatState, State, Window } from "./state.ts";
import { share } from "./structural-sharing.ts";
import { NO_UNREAD, unreadFields } from "./unread.ts";
import { type MessagePage, updateWindows } from "./window.ts";

/** How the caller sees a conversation, as the service tells it. */
interface ToldView {
  readonly state: OwnView;
  readonly last_read_seq: number;
  readonly cleared_seq?: number;
}

/** Applies the caller's view of a conversation, unless a newer one is known. */
export function applyView(chat: ChatState, told: ToldView, own_seq: number): ChatState {
  if (own_seq < chat.viewSeq) return chat;
  const { last_read_seq, cleared_seq = 0 } = told;
  const seq = Math.max(own_seq, chat.chat.own_seq);
  const state = share(chat.chat.state, told.state);
  const shown = setChat(chat, { ...chat.chat, state, own_seq: seq });
  const next = { ...clear(shown, cleared_seq), viewSeq: own_seq };
  if (last_read_seq === next.chat.last_read_seq) return next;
  // Only the server knows how many messages are unread after another position.
  return invalidate(setChat(next, { ...next.chat, last_read_seq }));
}

/** What the caller has read, and the server has not confirmed, stays read. */
export function withUnconfirmed<Told extends ToldView & { readonly conversation_id: string }>(
  { unconfirmedReads }: State,
  told: Told,
): Told {
  const read = unconfirmedReads[told.conversation_id] ?? 0;
  return read > told.last_read_seq ? { ...told, last_read_seq: read } : told;
}

/** Shows what the caller has set, before the server confirms it. */
export const showView = (chat: ChatState, set: Partial<OwnView>): ChatState =>
  chat.chat.state ? setChat(chat, { ...chat.chat, state: { ...chat.chat.state, ...set } }) : chat;

/** Applies what the caller has cleared, or erased for everybody. */
export function applyCleared(
  state: State,
  { conversation_id, cleared_seq, erased }: EventParams<"events.chatCleared">,
  own_seq = 0,
): State {
  if (erased) return removeChat(state, conversation_id, Number.MAX_SAFE_INTEGER);
  return updateChat(state, conversation_id, (chat) => {
    const next = clear(chat, cleared_seq);
    const viewSeq = Math.max(chat.viewSeq, own_seq);
    return setChat(
      { ...next, viewSeq },
      { ...next.chat, own_seq: Math.max(next.chat.own_seq, own_seq) },
    );
  });
}

/** Drops everything up to a value of the counter, which then counts as read. */
export function clear(state: ChatState, cleared_seq: number): ChatState {
  const { chat } = state;
  if (cleared_seq < clearedSeq(state) || (cleared_seq === 0 && !chat.cleared_seq)) return state;
  const isCleared = ({ seq }: { readonly seq: number }) => seq <= cleared_seq;
  if (cleared_seq === chat.cleared_seq && !state.window?.items.some(isCleared)) return state;
  const loaded = [...(state.window?.items ?? []), ...(state.aside?.items ?? [])];
  const dropped = loaded.filter(isCleared).map(({ id }) => id);
  const kept = updateWindows(dropMessages(state, dropped), (window) => after(window, cleared_seq));
  const last_message = chat.last_message && isCleared(chat.last_message) ? null : chat.last_message;
  const fields = {
    ...chat,
    cleared_seq,
    last_message,
    last_read_seq: Math.max(chat.last_read_seq, cleared_seq),
  };
  const isListed = last_message !== null || (kept.window?.changes.length ?? 0) > 0;
  const next = { ...setChat(kept, fields), isListed };
  if (chat.seq > cleared_seq) return invalidate(next);
  return setChat(next, { ...fields, ...unreadFields(NO_UNREAD) });
}

const clearedSeq = ({ chat }: ChatState): number => chat.cleared_seq ?? 0;

function after(window: Window, seq: number): Window {
  const changes = window.changes.filter((change) => change.seq > seq);
  const floor = window.floor && window.floor.seq > seq ? window.floor : null;
  return { ...window, changes, floor };
}

/** A page that was read before the conversation was cleared has what does not exist any more. */
export function withoutCleared(state: ChatState, page: MessagePage): MessagePage {
  const from = clearedSeq(state);
  const items = page.items.filter(({ seq }) => seq > from);
  return {
    items,
    has_more: page.has_more && items.length === page.items.length,
    changes: page.changes?.filter(({ seq }) => seq > from) ?? [],
  };
}

/** Something new brings a cleared conversation back to the list. */
export const list = (state: ChatState): ChatState =>
  state.isListed ? state : { ...state, isListed: true };
