import type { Conversation, EventFrame, Message } from "@parley/protocol";
import { invalidate, knownMessage, setChat } from "./chat.ts";
import type { ChatState } from "./state.ts";
import { share } from "./structural-sharing.ts";

type Unread = Conversation["unread"];

export const NO_UNREAD: Unread = { human: 0, agent: 0, mentions: 0 };

/** The unread fields of a conversation. */
export const unreadFields = (unread: Unread) => ({
  unread,
  unread_count: unread.human + unread.agent,
});

const isMentioned = (message: Message, me: string | undefined): boolean =>
  me !== undefined && message.mentions.includes(me);

/** Adds a message to the unread counts, or subtracts it. */
export function countUnread(
  unread: Unread,
  message: Message,
  me: string | undefined,
  step: 1 | -1,
): Unread {
  const { kind } = message.sender;
  const mentionStep = isMentioned(message, me) ? step : 0;
  return { ...unread, [kind]: unread[kind] + step, mentions: unread.mentions + mentionStep };
}

/** Updates the count of mentions: an edit may add or remove one in an unread message. */
export function countMention(
  state: ChatState,
  frame: EventFrame<"events.messageEdited" | "events.messageComplete">,
  before: ChatState,
  me: string | undefined,
): ChatState {
  const message = frame.params;
  if (message.imported || message.seq <= state.chat.last_read_seq) return state;
  if (before.tombstones.has(message.id)) return state;
  const old = knownMessage(before, message.id);
  // A streaming message has no mentions yet; whether another unknown message had some is not known.
  if (!old && frame.method === "events.messageEdited") return invalidate(state);
  const step = Number(isMentioned(message, me)) - Number(old ? isMentioned(old, me) : false);
  if (step === 0) return state;
  const unread = { ...state.chat.unread, mentions: state.chat.unread.mentions + step };
  return setChat(state, { ...state.chat, ...unreadFields(unread) });
}

/** Subtracts messages that are deleted or hidden from the unread counts. */
export function subtractUnread(
  state: ChatState,
  ids: readonly string[],
  me: string | undefined,
): ChatState {
  const { chat } = state;
  if (chat.unread_count === 0 || ids.length === 0) return state;
  const messages = ids.map((id) => knownMessage(state, id));
  if (messages.includes(undefined)) return invalidate(state);
  const unread = messages
    .filter((message) => message !== undefined)
    .filter(({ seq, imported }) => !imported && seq > chat.last_read_seq && seq <= chat.seq)
    .reduce((sum, message) => countUnread(sum, message, me, -1), chat.unread);
  return setChat(state, share(chat, { ...chat, ...unreadFields(unread) }));
}
