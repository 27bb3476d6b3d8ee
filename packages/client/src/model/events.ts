import type { Account, EventFrame } from "@parley/protocol";
import { chatAfter, forgotten, hidden, withRead } from "./chat.ts";
import { onChat, withoutChat } from "./chats.ts";
import { signed } from "./outbox.ts";
import type { State } from "./state.ts";
import { streamed } from "./streaming.ts";
import { put, share } from "./structural-sharing.ts";
import { typingAfter } from "./typing.ts";
import { onWindows, windowAfter } from "./window.ts";

/** The state after an event. */
export function afterEvent(state: State, frame: EventFrame): State {
  switch (frame.method) {
    case "events.hello":
      return identified(state, frame.params);
    case "events.messageDelta":
      return streamed(state, frame.params.id, [frame.params]);
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

/** Who the caller is. */
export const identified = (state: State, me: Account): State => ({
  ...state,
  me: share(state.me ?? undefined, me),
  outbox: signed(state.outbox, me),
});

const name = ({ me }: State) => me?.username;

function counted(state: State, given: EventFrame): State {
  if (given.method === "events.messageDeleted" && !given.at) {
    const { conversation_id, ids } = given.params;
    return onChat(withOwn(state, given.own_seq), conversation_id, (chat) =>
      hidden(chat, ids, name(state), given.own_seq),
    );
  }
  if (!given.at) return state;
  const { conversation_id, seq } = given.at;
  const isNews = seq > (state.chats[conversation_id]?.chat.seq ?? -1);
  if (isNews && isRemoval(given, name(state))) return withoutChat(state, conversation_id, seq);
  const heard = put(state.heard, conversation_id, Math.max(seq, state.heard[conversation_id] ?? 0));
  const next = onChat({ ...state, heard }, conversation_id, (chat) => {
    const after = chatAfter(chat, given, name(state));
    const moved = onWindows({ ...after, heard: Math.max(chat.heard, seq) }, (window) =>
      windowAfter(window, given, after.gone, name(state)),
    );
    return given.method === "events.messageDeleted" ? forgotten(moved, given.params.ids) : moved;
  });
  return { ...next, typing: typingAfter(next, given) };
}

/** The caller's own counter goes on by one; beyond that something is missing. */
function withOwn(state: State, own_seq: number | undefined): State {
  if (own_seq === undefined) return state;
  const { seq, heard } = state.own;
  const isNext = seq !== null && own_seq === seq + 1;
  return { ...state, own: { seq: isNext ? own_seq : seq, heard: Math.max(heard, own_seq) } };
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
