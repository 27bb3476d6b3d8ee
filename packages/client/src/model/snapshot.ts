import type { Conversation, ConversationDetail, Message } from "@parley/protocol";
import type { LocalChat, LocalMessage } from "../types.ts";
import { invalidate, mergeParticipants, setChat } from "./chat.ts";
import { asSent, newerMessage } from "./message.ts";
import { clear, list } from "./own-view.ts";
import { highestPositions, setReadPositions } from "./read-positions.ts";
import type { ChatState } from "./state.ts";
import { share } from "./structural-sharing.ts";
import { NO_UNREAD, unreadFields } from "./unread.ts";

/** A conversation as a reply contains it. */
export type Snapshot = Conversation | ConversationDetail;

/**
 * Merges a conversation from a reply into what is known of it. The reply may be older, or lack what
 * the caller has read and the server has not confirmed. It is `authoritative` if it was requested after
 * everything that is known of the caller's read position: only then a lower position is the newer one.
 */
export function mergeSnapshot(
  before: ChatState | undefined,
  snapshot: Snapshot,
  authoritative = false,
): ChatState {
  const { reads = {} } = snapshot as Partial<ConversationDetail>;
  if (!before) return createChat(snapshot, reads);
  const isNewerView = snapshot.own_seq >= before.viewSeq;
  const cleared = isNewerView ? clear(before, snapshot.cleared_seq ?? 0) : before;
  const known = snapshot.last_message && isNewerView ? list(cleared) : cleared;
  const positions = highestPositions(known.readPositions, reads);
  if (snapshot.seq < known.chat.seq) return setReadPositions(known, positions);
  const participants = mergeParticipants(known, snapshot);
  const own = mergeOwnFields(known, snapshot, authoritative);
  const chat = { ...snapshot, ...own, participants, reads: known.chat.reads };
  const highestSeq = Math.max(known.highestSeq, snapshot.seq);
  const merged = setChat(known, share<LocalChat>(known.chat, chat));
  const viewSeq = Math.max(known.viewSeq, snapshot.own_seq);
  const next = setReadPositions({ ...merged, highestSeq, viewSeq }, positions);
  return isConclusive(known, snapshot, authoritative) ? next : invalidate(next);
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
    // Whether there is anything new in it, lists tell.
    isListed: last_message !== null || !snapshot.cleared_seq,
    viewSeq: snapshot.own_seq,
    moves: 0,
    tombstones: new Set(),
  };
}

/**
 * Whether the snapshot determines the conversation's state: its unread counts are not older than
 * what is known, and it lists all participants where they are needed.
 */
function isConclusive(known: ChatState, snapshot: Snapshot, authoritative: boolean): boolean {
  if (hasOlderOwnFields(known, snapshot, authoritative)) return false;
  const isSame = snapshot.seq === known.chat.seq;
  const isComplete = snapshot.participants.length === snapshot.participant_count;
  return isSame || isComplete || known.window === null;
}

/** Whether the snapshot lacks something that the caller has read or hidden. */
const hasOlderOwnFields = (
  { chat }: ChatState,
  { last_read_seq, own_seq }: Snapshot,
  authoritative: boolean,
): boolean => (last_read_seq < chat.last_read_seq && !authoritative) || own_seq < chat.own_seq;

/** The fields that are the caller's own. What was read or hidden here stays so. */
function mergeOwnFields(known: ChatState, snapshot: Snapshot, authoritative: boolean) {
  const { chat, window, tombstones } = known;
  const { last_message: latest } = snapshot;
  const fetched = latest && latest.seq > (chat.cleared_seq ?? 0) ? latest : null;
  const { unread, unread_count } = chat;
  const isOlderView = snapshot.own_seq < known.viewSeq;
  const higher = Math.max(chat.last_read_seq, snapshot.last_read_seq);
  const own = {
    last_read_seq: authoritative
      ? snapshot.last_read_seq
      : isOlderView
        ? chat.last_read_seq
        : higher,
    own_seq: Math.max(chat.own_seq, snapshot.own_seq),
    ...(isOlderView && chat.state && { state: chat.state }),
    ...(isOlderView && chat.cleared_seq && { cleared_seq: chat.cleared_seq }),
  };
  if (!hasOlderOwnFields(known, snapshot, authoritative))
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
