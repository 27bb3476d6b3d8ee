import type { SharedConversation } from "@parley/protocol";
import type { LocalChat } from "../types.ts";
import { invalidate, setChat } from "./chat.ts";
import type { ChatState } from "./state.ts";
import { share } from "./structural-sharing.ts";
import { NO_UNREAD, unreadFields } from "./unread.ts";

type ReadPositions = ChatState["readPositions"];

/** The higher position of each person: read positions never move back. */
export function highestPositions(known: ReadPositions, added: ReadPositions): ReadPositions {
  const higher = Object.entries(added).filter(([username, seq]) => seq > (known[username] ?? -1));
  return higher.length === 0 ? known : { ...known, ...Object.fromEntries(higher) };
}

/** A person added to a group has read up to the change before the one that added them. */
export function positionsOfAdded(
  before: LocalChat,
  { participants, seq }: SharedConversation,
): ReadPositions {
  if (before.participants.length < before.participant_count) return {};
  const present = new Set(before.participants.map(({ username }) => username));
  const added = participants.filter(
    ({ kind, username }) => kind === "human" && !present.has(username),
  );
  return Object.fromEntries(added.map(({ username }) => [username, seq - 1]));
}

/**
 * Stores read positions and shows those of participants. If not all participants of a large group
 * are known, all positions are shown.
 */
export function setReadPositions(state: ChatState, readPositions: ReadPositions): ChatState {
  const { participants, participant_count } = state.chat;
  const shown =
    participants.length < participant_count
      ? readPositions
      : Object.fromEntries(
          participants.flatMap(({ username }) => {
            const seq = readPositions[username];
            return seq === undefined ? [] : [[username, seq]];
          }),
        );
  const reads = share(state.chat.reads, shown);
  const next = readPositions === state.readPositions ? state : { ...state, readPositions };
  return reads === state.chat.reads ? next : setChat(next, { ...next.chat, reads });
}

/** Marks as read up to `seq`: the person said so, or sent the message at that place. */
export function markRead(
  state: ChatState,
  username: string,
  seq: number,
  me: string | undefined,
): ChatState {
  const moved = setReadPositions(state, highestPositions(state.readPositions, { [username]: seq }));
  const { chat } = moved;
  if (username !== me || seq < chat.last_read_seq) return moved;
  const next = setChat({ ...moved, moves: moved.moves + 1 }, { ...chat, last_read_seq: seq });
  if (chat.unread_count === 0) return next;
  if ((chat.last_message?.seq ?? 0) > seq) return invalidate(next);
  return setChat(next, { ...next.chat, ...unreadFields(NO_UNREAD) });
}
