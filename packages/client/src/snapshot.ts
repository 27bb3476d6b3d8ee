import type { Conversation, ConversationDetail, Message } from "@parley/protocol";
import { doubtful, figures, membersOf, NOTHING, withChat } from "./chat.ts";
import { asSent, later } from "./message.ts";
import { named } from "./names.ts";
import { share } from "./share.ts";
import type { ChatState } from "./state.ts";
import type { LocalChat, LocalMessage } from "./types.ts";

export type Snapshot = Conversation | ConversationDetail;

/** A conversation as the server has it, met with what is known of it. */
export function adopted(known: ChatState | undefined, snapshot: Snapshot): ChatState {
  if (!known) {
    const { reads = {} } = snapshot as Partial<ConversationDetail>;
    const last_message = snapshot.last_message && asSent(snapshot.last_message);
    return {
      chat: { ...snapshot, last_message, reads },
      window: null,
      aside: null,
      heard: snapshot.seq,
      doubts: 0,
      answered: 0,
      gone: new Set(),
    };
  }
  const reads = readsOf(known.chat, snapshot);
  if (snapshot.seq < known.chat.seq) {
    return withChat(known, share(known.chat, { ...known.chat, reads }));
  }
  const participants = membersOf(known, snapshot);
  const chat = { ...snapshot, ...mineIn(known, snapshot), participants, reads };
  const met = withChat(known, share<LocalChat>(known.chat, chat));
  const heard = Math.max(known.heard, snapshot.seq);
  const next = named({ ...met, heard }, participants);
  return isCertain(known, snapshot) ? next : doubtful(next);
}

/** Not if it was on its way while its latest message was hidden, or leaves open who has come and gone. */
function isCertain(known: ChatState, snapshot: Snapshot): boolean {
  const { last_message, participants, participant_count } = snapshot;
  if (last_message && known.gone.has(last_message.id)) return false;
  const isWhole = participants.length === participant_count;
  return isWhole || known.window === null || snapshot.seq === known.chat.seq;
}

/** The caller's own figures. What was read here and is not known there yet stays read. */
function mineIn({ chat, window, gone }: ChatState, snapshot: Snapshot) {
  const fetched = snapshot.last_message;
  const isGone = fetched !== null && gone.has(fetched.id);
  const last_message = isGone ? (window?.items.at(-1) ?? null) : lastOf(chat, fetched);
  const last_read_seq = Math.max(chat.last_read_seq, snapshot.last_read_seq);
  const isRead = last_read_seq > snapshot.last_read_seq && (fetched?.seq ?? 0) <= last_read_seq;
  return { last_message, last_read_seq, ...(isRead && figures(NOTHING)) };
}

function lastOf({ last_message: known }: LocalChat, fetched: Message | null): LocalMessage | null {
  if (!fetched) return null;
  return known?.id === fetched.id ? later(asSent(known), fetched) : asSent(fetched);
}

function readsOf(known: LocalChat, snapshot: Snapshot): LocalChat["reads"] {
  const { reads = {} } = snapshot as Partial<ConversationDetail>;
  const merged: Record<string, number> = { ...known.reads };
  for (const [username, seq] of Object.entries(reads)) {
    merged[username] = Math.max(merged[username] ?? 0, seq);
  }
  const { participants, participant_count } = snapshot.seq < known.seq ? known : snapshot;
  if (participants.length < participant_count) return merged;
  const present = new Set(participants.map(({ username }) => username));
  return Object.fromEntries(Object.entries(merged).filter(([username]) => present.has(username)));
}
