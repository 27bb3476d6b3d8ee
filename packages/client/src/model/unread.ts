import type { Conversation, EventFrame, Message } from "@parley/protocol";
import { invalidate, knownMessage, setChat } from "./chat.ts";
import type { ChatState, State } from "./state.ts";
import { share } from "./structural-sharing.ts";

type Unread = Conversation["unread"];

export const NO_UNREAD: Unread = { human: 0, agent: 0, mentions: 0 };

/** The unread fields of a conversation. */
export const unreadFields = (unread: Unread) => ({
  unread,
  unread_count: unread.human + unread.agent,
});

/** For whom messages count as unread. */
export interface Viewer {
  readonly me: string | undefined;
  /** Usernames of the people whom the viewer blocked: their messages and those of their agents do not count. */
  readonly blocked: readonly string[];
}

export const viewerOf = ({ me, blocked }: State): Viewer => ({
  me: me?.username,
  blocked: blocked.usernames,
});

const isMentioned = ({ mentions, sender }: Message, { me }: Viewer): boolean =>
  me !== undefined && mentions.includes(me) && sender.username !== me;

const isBlocked = ({ sender }: Message, { blocked }: Viewer): boolean =>
  blocked.includes(sender.username.replace(/:.*/, ""));

/** Adds a message to the unread counts, or subtracts it. */
export function countUnread(
  unread: Unread,
  message: Message,
  viewer: Viewer,
  step: 1 | -1,
): Unread {
  if (isBlocked(message, viewer)) return unread;
  const { kind } = message.sender;
  const mentionStep = isMentioned(message, viewer) ? step : 0;
  return { ...unread, [kind]: unread[kind] + step, mentions: unread.mentions + mentionStep };
}

/** Updates the count of mentions: an edit may add or remove one in an unread message. */
export function countMention(
  state: ChatState,
  frame: EventFrame<"events.messageEdited" | "events.messageComplete">,
  before: ChatState,
  viewer: Viewer,
): ChatState {
  const message = frame.params;
  if (message.imported || message.seq <= state.chat.last_read_seq) return state;
  if (before.tombstones.has(message.id) || isBlocked(message, viewer)) return state;
  const old = knownMessage(before, message.id);
  // A streaming message has no mentions yet; whether another unknown message had some is not known.
  if (!old && frame.method === "events.messageEdited") return invalidate(state);
  const step =
    Number(isMentioned(message, viewer)) - Number(old ? isMentioned(old, viewer) : false);
  if (step === 0) return state;
  const unread = { ...state.chat.unread, mentions: state.chat.unread.mentions + step };
  return setChat(state, { ...state.chat, ...unreadFields(unread) });
}

/** Subtracts messages that are deleted or hidden from the unread counts. */
export function subtractUnread(
  state: ChatState,
  ids: readonly string[],
  viewer: Viewer,
): ChatState {
  const { chat } = state;
  if (chat.unread_count === 0 || ids.length === 0) return state;
  const messages = ids.map((id) => knownMessage(state, id));
  if (messages.includes(undefined)) return invalidate(state);
  const unread = messages
    .filter((message) => message !== undefined)
    .filter(({ seq, imported }) => !imported && seq > chat.last_read_seq && seq <= chat.seq)
    .reduce((sum, message) => countUnread(sum, message, viewer, -1), chat.unread);
  return setChat(state, share(chat, { ...chat, ...unreadFields(unread) }));
}
