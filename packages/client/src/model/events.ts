import type { Account, EventFrame } from "@parley/protocol";
import { invalidate, setChat } from "./chat.ts";
import { chatAfter } from "./chat-events.ts";
import { removeChat, updateChat } from "./chats.ts";
import { dropMessages, hideMessages } from "./deletions.ts";
import { type CountedFrame, isStanding } from "./event-kinds.ts";
import { setSender } from "./outbox.ts";
import { applyCleared, applyView, withUnconfirmed } from "./own-view.ts";
import { markRead } from "./read-positions.ts";
import type { Blocked, ChatState, State } from "./state.ts";
import { applyDeltas, setTurnStatus } from "./streaming-messages.ts";
import { setEntry, share } from "./structural-sharing.ts";
import { typingAfter } from "./typing.ts";
import { viewerOf } from "./unread.ts";
import { updateWindows, windowAfter } from "./window.ts";

/** The state after an event. */
export function applyEvent(state: State, frame: EventFrame): State {
  switch (frame.method) {
    case "events.hello":
      return setMe(state, frame.params);
    case "events.messageDelta":
      return applyDeltas(state, frame.params.id, [frame.params]);
    case "events.turnStatus":
      return setTurnStatus(state, frame.params.message_id, frame.params.text);
    case "events.typing":
      return { ...state, typing: typingAfter(state, frame) };
    case "events.chatRead": {
      const { conversation_id, reader, last_read_seq } = frame.params;
      return updateChat(state, conversation_id, (chat) =>
        markRead(chat, reader.username, last_read_seq, state.me?.username),
      );
    }
    case "events.messageDeleted":
      return frame.at ? applyCounted(state, frame) : applyHidden(state, frame);
    case "events.blocksUpdated":
      return applyBlocked(advanceOwn(state, frame.own_seq), {
        ...frame.params,
        own_seq: frame.own_seq ?? 0,
      });
    case "events.chatStateUpdated": {
      const { params, own_seq = 0 } = frame;
      return updateChat(advanceOwn(state, own_seq), params.conversation_id, (chat) =>
        own_seq > chat.viewSeq ? applyView(chat, withUnconfirmed(state, params), own_seq) : chat,
      );
    }
    case "events.chatCleared":
      return applyCleared(advanceOwn(state, frame.own_seq), frame.params, frame.own_seq);
    case "events.turnRequested":
    case "events.presence":
      return state;
    case "events.accountUpdated":
      // The reducer takes new names from every action. Settings of an agent have an `own_seq`.
      return advanceOwn(state, frame.own_seq);
    default:
      return isStanding(frame) ? noteCounter(state, frame) : applyCounted(state, frame);
  }
}

/** Sets who the caller is. */
export const setMe = (state: State, me: Account): State => ({
  ...state,
  me: share(state.me ?? undefined, me),
  outbox: setSender(state.outbox, me),
});

/** Messages that the caller deleted for themselves. */
function applyHidden(state: State, frame: EventFrame<"events.messageDeleted">): State {
  const { conversation_id, ids } = frame.params;
  return updateChat(advanceOwn(state, frame.own_seq), conversation_id, (chat) =>
    hideMessages(chat, ids, viewerOf(state), frame.own_seq),
  );
}

/**
 * Applies a block list, unless a newer one is known. Conversations whose unread counts it may change are
 * fetched.
 */
export function applyBlocked(state: State, blocked: Blocked | undefined): State {
  if (!blocked || blocked.own_seq <= state.blocked.own_seq) return state;
  const next = { ...state, blocked: share(state.blocked, blocked) };
  if (next.blocked.usernames === state.blocked.usernames) return next;
  return Object.keys(state.chats).reduce(
    (each, id) => updateChat(each, id, (chat) => withBlocks(chat, blocked)),
    next,
  );
}

/** Replies from before the block list changed have older unread counts: `own_seq` tells. */
function withBlocks(state: ChatState, { own_seq }: Blocked): ChatState {
  const { chat } = state;
  const next = own_seq > chat.own_seq ? setChat(state, { ...chat, own_seq }) : state;
  return chat.seq > chat.last_read_seq ? invalidate(next) : next;
}

/** Advances the caller's own counter if the value is the next one; otherwise changes are missing. */
function advanceOwn(state: State, own_seq: number | undefined): State {
  if (own_seq === undefined) return state;
  const { seq, highest } = state.own;
  const isNext = seq !== null && own_seq === seq + 1;
  return { ...state, own: { seq: isNext ? own_seq : seq, highest: Math.max(highest, own_seq) } };
}

/** Remembers the counter of an event, so that missing changes are fetched. */
function noteCounter(state: State, { at }: Pick<EventFrame, "at">): State {
  if (!at) return state;
  const { conversation_id, seq } = at;
  const highest = Math.max(seq, state.highestSeqs[conversation_id] ?? 0);
  const highestSeqs = setEntry(state.highestSeqs, conversation_id, highest);
  return updateChat({ ...state, highestSeqs }, conversation_id, (chat) =>
    seq > chat.highestSeq ? { ...chat, highestSeq: seq } : chat,
  );
}

function applyCounted(state: State, frame: CountedFrame): State {
  if (!frame.at) return state;
  const me = state.me?.username;
  const { conversation_id, seq } = frame.at;
  const isNews = seq > (state.chats[conversation_id]?.chat.seq ?? -1);
  if (isNews && isRemoval(frame, me)) return removeChat(state, conversation_id, seq);
  const isUnknown = !state.chats[conversation_id] && bringsToTop(frame);
  const news = isUnknown ? setEntry(state.news, conversation_id, true) : state.news;
  const next = updateChat({ ...noteCounter(state, frame), news }, conversation_id, (before) => {
    const chat = chatAfter(before, frame, viewerOf(state));
    const after = updateWindows(chat, (window) => windowAfter(window, frame, chat.tombstones, me));
    return frame.method === "events.messageDeleted" ? dropMessages(after, frame.params.ids) : after;
  });
  return { ...next, typing: typingAfter(next, frame) };
}

/** Whether the event lists all participants and the caller is not among them. */
function isRemoval(frame: CountedFrame, me: string | undefined): boolean {
  if (frame.method !== "events.conversationUpdated") return false;
  const { participants, participant_count } = frame.params;
  return (
    participants.length === participant_count &&
    !participants.some(({ username }) => username === me)
  );
}

/** Whether the event moves its conversation to the top of the list, so that it has to be known. */
export const bringsToTop = ({ method }: EventFrame): boolean =>
  method === "events.messageNew" ||
  method === "events.conversationNew" ||
  method === "events.conversationUpdated";
