import type { Account, EventFrame, Message } from "@parley/protocol";
import { chatAfter, forgotten, hidden, withRead } from "./chat.ts";
import { onChat, withoutChat } from "./chats.ts";
import { named, signedAsNow } from "./names.ts";
import { signed } from "./pending.ts";
import { put, share } from "./share.ts";
import type { ChatState, State } from "./state.ts";
import { streamed } from "./streaming.ts";
import { typingAfter } from "./typing.ts";
import { onWindows, windowAfter } from "./window.ts";

/** The state after an event. */
export function afterEvent(state: State, frame: EventFrame): State {
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
        isAbsent(chat, reader) ? chat : withRead(chat, reader.username, last_read_seq, name(state)),
      );
    }
    default:
      return counted(state, frame);
  }
}

/** Whether somebody has left: what they did before may be told later. */
const isAbsent = ({ chat }: ChatState, { username }: Account): boolean =>
  chat.reads[username] === undefined &&
  chat.participants.length === chat.participant_count &&
  !chat.participants.some((account) => account.username === username);

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
    return onChat(state, conversation_id, (chat) => hidden(chat, ids, name(state)));
  }
  if (!given.at) return state;
  const { conversation_id, seq } = given.at;
  const isNews = seq > (state.chats[conversation_id]?.chat.seq ?? -1);
  if (isNews && isRemoval(given, name(state))) return withoutChat(state, conversation_id, seq);
  const heard = put(state.heard, conversation_id, Math.max(seq, state.heard[conversation_id] ?? 0));
  const next = onChat({ ...state, heard }, conversation_id, (chat) => {
    const frame = signedEvent(chat, given);
    const after = chatAfter(chat, frame, name(state));
    const moved = onWindows({ ...after, heard: Math.max(chat.heard, seq) }, (window) =>
      windowAfter(window, frame, after.gone, name(state)),
    );
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
