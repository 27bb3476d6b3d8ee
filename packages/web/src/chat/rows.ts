import type { LocalMessage } from "@parley/client";
import { dayLabel, dayOf } from "../lib/time.ts";

/** A message and what stands above it, in the order of the conversation. */
export interface Row {
  key: string;
  message: LocalMessage;
  /** The day that begins with it. */
  day: string | null;
  /** The line above the first message that had not been read. */
  fresh: boolean;
  /** Whether it begins and ends a run of messages by one sender. */
  first: boolean;
  last: boolean;
}

const TOGETHER_MS = 5 * 60_000;

/** Everything that is shown above a message belongs to its row, so that rows keep their keys. */
export function rowsOf(
  messages: readonly LocalMessage[],
  me: string,
  readUpTo: number | null,
): Row[] {
  const rows: Row[] = [];
  let previous: LocalMessage | undefined;
  let fresh = readUpTo === null;
  for (const message of messages) {
    const day = !previous || dayOf(previous.created_at) !== dayOf(message.created_at);
    const begins = !fresh && isUnread(message, me, readUpTo ?? 0);
    fresh ||= begins;
    const first = day || begins || !together(previous, message);
    const before = rows.at(-1);
    if (before) before.last = first;
    rows.push({
      key: keyOf(message, me),
      message,
      day: day ? dayLabel(message.created_at) : null,
      fresh: begins,
      first,
      last: true,
    });
    previous = message;
  }
  return rows;
}

/** A message of one's own keeps its key when it gets its id. */
const keyOf = ({ id, client_msg_id, sender }: LocalMessage, me: string) =>
  sender.username === me && client_msg_id !== null ? client_msg_id : id;

const isUnread = ({ seq, sender }: LocalMessage, me: string, readUpTo: number) =>
  seq > readUpTo && sender.username !== me;

const together = (one: LocalMessage | undefined, next: LocalMessage) =>
  one !== undefined &&
  one.sender.username === next.sender.username &&
  next.reply_to_id === null &&
  Date.parse(next.created_at) - Date.parse(one.created_at) < TOGETHER_MS;
