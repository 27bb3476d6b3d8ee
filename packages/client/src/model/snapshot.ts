import type { Conversation, ConversationDetail, Message } from "@parley/protocol";
import type { LocalChat, LocalMessage } from "../types.ts";
import { invalidate, mergeParticipants, setChat } from "./chat.ts";
import { asSent, newerMessage } from "./message.ts";
import { highestPositions, setReadPositions } from "./read-positions.ts";
import type { ChatState } from "./state.ts";
import { share } from "./structural-sharing.ts";
import { NO_UNREAD, unreadFields } from "./unread.ts";

/** A conversation as a reply contains it. */
export type Snapshot = Conversation | ConversationDetail;

/**
 * Merges a conversation from a reply into what is known of it. The reply may be older, or lack what
 * the caller has read and the server has not confirmed.
 */
export function mergeSnapshot(known: ChatState | undefined, snapshot: Snapshot): ChatState {
  const { reads = {} } = snapshot as Partial<ConversationDetail>;
  if (!known) return createChat(snapshot, reads);
  const positions = highestPositions(known.readPositions, reads);
  if (snapshot.seq < known.chat.seq) return setReadPositions(known, positions);
  const participants = mergeParticipants(known, snapshot);
  const own = mergeOwnFields(known, snapshot);
  const chat = { ...snapshot, ...own, participants, reads: known.chat.reads };
  const highestSeq = Math.max(known.highestSeq, snapshot.seq);
  const merged = setChat(known, share<LocalChat>(known.chat, chat));
  const next = setReadPositions({ ...merged, highestSeq }, positions);
  return isConclusive(known, snapshot) ? next : invalidate(next);
}

function createChat(snapshot: Snapshot, reads: ChatState["readPositions"]): ChatState {
  const last_message = snapshot.last_message && asSent(snapshot.last_message);
  return {
    chat: { ...snapshot, last_message, reads },
    window: null,
    aside: null,
    highestSeq: snapshot.seq,
    invalidations: 0,
    validated: 0,
    readPositions: reads,
    tombstones: new Set(),
  };
}

/**
 * Whether the snapshot determines the conversation's state: its unread counts are not older than
 * what is known, and it lists all participants where they are needed.
 */
function isConclusive(known: ChatState, snapshot: Snapshot): boolean {
  if (hasOlderOwnFields(known, snapshot)) return false;
  const isSame = snapshot.seq === known.chat.seq;
  const isComplete = snapshot.participants.length === snapshot.participant_count;
  return isSame || isComplete || known.window === null;
}

/** Whether the snapshot lacks something that the caller has read or hidden. */
const hasOlderOwnFields = ({ chat }: ChatState, { last_read_seq, own_seq }: Snapshot): boolean =>
  last_read_seq < chat.last_read_seq || own_seq < chat.own_seq;

/** The fields that are the caller's own. What was read or hidden here stays so. */
function mergeOwnFields(known: ChatState, snapshot: Snapshot) {
  const { chat, window, tombstones } = known;
  const { last_message: fetched } = snapshot;
  const { unread, unread_count } = chat;
  const own = {
    last_read_seq: Math.max(chat.last_read_seq, snapshot.last_read_seq),
    own_seq: Math.max(chat.own_seq, snapshot.own_seq),
  };
  if (!hasOlderOwnFields(known, snapshot))
    return { ...own, last_message: mergeLast(chat, fetched) };
  if (snapshot.seq === chat.seq) {
    return { ...own, unread, unread_count, last_message: chat.last_message };
  }
  const isDeleted = fetched !== null && tombstones.has(fetched.id);
  const last_message = isDeleted ? (window?.items.at(-1) ?? null) : mergeLast(chat, fetched);
  const isRead = (fetched?.seq ?? 0) <= own.last_read_seq;
  return { ...own, last_message, ...(isRead && unreadFields(NO_UNREAD)) };
}

function mergeLast(
  { last_message: known }: LocalChat,
  fetched: Message | null,
): LocalMessage | null {
  if (!fetched) return null;
  return known?.id === fetched.id ? newerMessage(asSent(known), fetched) : asSent(fetched);
}
