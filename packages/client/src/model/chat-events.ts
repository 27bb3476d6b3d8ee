import type { Account, Conversation, ConversationUpdate, Message } from "@parley/protocol";
import type { LocalMessage } from "../types.ts";
import { invalidate, mergeParticipants, setChat } from "./chat.ts";
import { uncountMessages } from "./deletions.ts";
import type { CountedFrame } from "./event-kinds.ts";
import { asSent, changedMessageId, type MessageChangeEvent, messageAfter } from "./message.ts";
import { list } from "./own-view.ts";
import {
  highestPositions,
  markRead,
  positionsOfAdded,
  setReadPositions,
} from "./read-positions.ts";
import type { ChatState } from "./state.ts";
import { countMention, countUnread, unreadFields, type Viewer } from "./unread.ts";

/** The conversation after a counted event; unchanged unless the event is the next change. */
export function chatAfter(state: ChatState, frame: CountedFrame, viewer: Viewer): ChatState {
  const seq = frame.at?.seq ?? 0;
  if (seq !== state.chat.seq + 1) return state;
  const next = applyEvent(state, frame, viewer);
  return setChat(next, { ...next.chat, seq });
}

function applyEvent(state: ChatState, frame: CountedFrame, viewer: Viewer): ChatState {
  const { me } = viewer;
  switch (frame.method) {
    case "events.messageNew":
      return addMessage(state, frame.params, viewer);
    case "events.messageEdited":
    case "events.messageComplete":
      return countMention(updateLast(state, frame, me), frame, state, viewer);
    case "events.reactionAdded":
    case "events.reactionRemoved":
    case "events.toolCallUpdated":
      return updateLast(state, frame, me);
    case "events.messageDeleted":
      return uncountMessages(state, frame.params.ids, viewer);
    case "events.conversationUpdated":
      return updateConversation(state, frame.params);
    default:
      // An event that this version does not know: only the counter changes.
      frame satisfies never;
      return state;
  }
}

/**
 * Counts as the server does: a person who sends a message has read up to it. An imported message
 * counts as read, and says nothing about what its sender has read.
 */
function addMessage(state: ChatState, message: Message, viewer: Viewer): ChatState {
  const { me } = viewer;
  const { sender, seq, imported } = message;
  const isRead = imported || sender.username === me || seq <= state.chat.last_read_seq;
  const unread = isRead ? state.chat.unread : countUnread(state.chat.unread, message, viewer, 1);
  const chat = {
    ...state.chat,
    ...unreadFields(unread),
    last_message: state.tombstones.has(message.id) ? state.chat.last_message : asSent(message),
    updated_at: updatedAt(state.chat, message),
  };
  const next = setChat(list(state), chat);
  return sender.kind === "human" && !imported ? markRead(next, sender.username, seq, me) : next;
}

/** An imported message never moves a conversation down, unless it is the first that happens in it. */
const updatedAt = ({ updated_at }: Conversation, { created_at, seq, imported }: Message) =>
  imported && seq > 1 && updated_at > created_at ? updated_at : created_at;

function updateLast(
  state: ChatState,
  frame: MessageChangeEvent,
  me: string | undefined,
): ChatState {
  const last = state.chat.last_message as LocalMessage | null;
  if (last?.id !== changedMessageId(frame)) return state;
  return setChat(state, { ...state.chat, last_message: messageAfter(last, frame, me) });
}

/** Groups of more people notify only of mentions, unless the caller has set another level. */
const MOST_PEOPLE_HEARD = 20;

const isSmall = (participants: readonly Account[]) =>
  participants.filter(({ kind }) => kind === "human").length <= MOST_PEOPLE_HEARD;

function updateConversation(state: ChatState, update: ConversationUpdate): ChatState {
  const { last_message: _, changes: __, ...fields } = update;
  const before = state.chat;
  const participants = mergeParticipants(state, update);
  const positions = highestPositions(state.readPositions, positionsOfAdded(before, update));
  const after = { ...before, ...fields, participants };
  const next = setReadPositions(setChat(list(state), after), positions);
  const isComplete = update.participants.length === update.participant_count;
  // The level of notifications may depend on the number of people, and on what the caller has set.
  const isSame = isSmall(before.participants) === isSmall(participants);
  return isComplete && isSame ? next : invalidate(next);
}
