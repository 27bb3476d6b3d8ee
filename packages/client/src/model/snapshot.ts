import type { Conversation, ConversationDetail, Message } from "@parley/protocol";
import type { LocalChat, LocalMessage } from "../types.ts";
import { doubtful, figures, highest, membersOf, NOTHING, withChat, withPositions } from "./chat.ts";
import { asSent, later } from "./message.ts";
import type { ChatState } from "./state.ts";
import { share } from "./structural-sharing.ts";

export type Snapshot = Conversation | ConversationDetail;

/**
 * A conversation as a reply has it, met with what is known of it. The reply may be older. While the
 * caller has read on without the server's knowing (`isReading`), its figures are older by nature.
 */
export function adopted(
  known: ChatState | undefined,
  snapshot: Snapshot,
  isReading = false,
): ChatState {
  const { reads = {} } = snapshot as Partial<ConversationDetail>;
  if (!known) return first(snapshot, reads);
  const positions = highest(known.positions, reads);
  if (snapshot.seq < known.chat.seq) return withPositions(known, positions);
  const participants = membersOf(known, snapshot);
  const chat = { ...snapshot, ...ownPart(known, snapshot), participants, reads: known.chat.reads };
  const heard = Math.max(known.heard, snapshot.seq);
  const met = withChat(known, share<LocalChat>(known.chat, chat));
  const next = withPositions({ ...met, heard }, positions);
  return isCertain(known, snapshot, isReading) ? next : doubtful(next);
}

function first(snapshot: Snapshot, reads: ChatState["positions"]): ChatState {
  const last_message = snapshot.last_message && asSent(snapshot.last_message);
  return {
    chat: { ...snapshot, last_message, reads },
    window: null,
    aside: null,
    heard: snapshot.seq,
    doubts: 0,
    answered: 0,
    positions: reads,
    gone: new Set(),
  };
}

/** Not if its figures are older than what is known, or it leaves open who has come and gone. */
function isCertain(known: ChatState, snapshot: Snapshot, isReading: boolean): boolean {
  const isSame = snapshot.seq === known.chat.seq;
  if (!isSame && !isReading && isOlder(known, snapshot)) return false;
  const isWhole = snapshot.participants.length === snapshot.participant_count;
  return isSame || isWhole || known.window === null;
}

/** Whether the caller has read or hidden something that the snapshot does not know of. */
const isOlder = ({ chat }: ChatState, { last_read_seq, own_seq }: Snapshot): boolean =>
  last_read_seq < chat.last_read_seq || own_seq < chat.own_seq;

/** What is the caller's own. What was read here and is not known there yet stays read. */
function ownPart(known: ChatState, snapshot: Snapshot) {
  const { chat, window, gone } = known;
  const { last_message: fetched } = snapshot;
  const { unread, unread_count } = chat;
  const own = {
    last_read_seq: Math.max(chat.last_read_seq, snapshot.last_read_seq),
    own_seq: Math.max(chat.own_seq, snapshot.own_seq),
  };
  if (!isOlder(known, snapshot)) return { ...own, last_message: lastOf(chat, fetched) };
  if (snapshot.seq === chat.seq) {
    return { ...own, unread, unread_count, last_message: chat.last_message };
  }
  const isGone = fetched !== null && gone.has(fetched.id);
  const last_message = isGone ? (window?.items.at(-1) ?? null) : lastOf(chat, fetched);
  const isRead = (fetched?.seq ?? 0) <= own.last_read_seq;
  return { ...own, last_message, ...(isRead && figures(NOTHING)) };
}

function lastOf({ last_message: known }: LocalChat, fetched: Message | null): LocalMessage | null {
  if (!fetched) return null;
  return known?.id === fetched.id ? later(asSent(known), fetched) : asSent(fetched);
}
