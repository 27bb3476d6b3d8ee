import type { LocalMessage, MessageWindow } from "@parley/client";
import type { ConversationChange } from "@parley/protocol";
import { type Day, dayAround, dayLabel } from "../lib/time.ts";

/** A message and what stands above it, in the order of the conversation. */
export interface Row {
  key: string;
  message: LocalMessage;
  /** The day that begins with it. */
  day: string | null;
  /** What changed of the group between the message before and this one. */
  changes: readonly ConversationChange[];
  /** What changed since; only below the latest message. */
  changesAfter: readonly ConversationChange[];
  /** The line above the first message that had not been read. */
  fresh: boolean;
  /** Whether it begins and ends a run of messages by one sender. */
  first: boolean;
  last: boolean;
}

const RUN_GAP_MS = 5 * 60_000;

/**
 * Everything that is shown above a message belongs to its row, so that rows keep their keys. Rows
 * that were made before, of the same messages up to some place, are taken over.
 */
export function rowsOf(
  { items: messages, changes }: Pick<MessageWindow, "items" | "changes">,
  me: string,
  readUpTo: number | null,
  made: readonly Row[] = [],
): Row[] {
  const rows = made.slice(0, sameRows(messages, made));
  let previous = rows.at(-1)?.message;
  let today: Day | null = previous ? dayAround(Date.parse(previous.created_at)) : null;
  let fresh = readUpTo === null || rows.some((row) => row.fresh);
  for (const message of messages.slice(rows.length)) {
    const at = Date.parse(message.created_at);
    const day = !today || at < today.from || at >= today.to;
    if (day) today = dayAround(at);
    const begins = !fresh && isUnread(message, me, readUpTo ?? 0);
    fresh ||= begins;
    const above = between(changes, placeOf(previous), placeOf(message));
    const first = day || begins || above.length > 0 || !inSameRun(previous, message);
    const before = rows.at(-1);
    if (before) before.last = first;
    rows.push({
      key: keyOf(message, me),
      message,
      day: day ? dayLabel(message.created_at) : null,
      changes: above,
      changesAfter: NO_CHANGES,
      fresh: begins,
      first,
      last: true,
    });
    previous = message;
  }
  const latest = rows.at(-1);
  if (latest) latest.changesAfter = between(changes, placeOf(previous), Number.POSITIVE_INFINITY);
  return rows;
}

const NO_CHANGES: readonly ConversationChange[] = [];

/** What is not sent yet comes after everything that has a place. */
const placeOf = (message: LocalMessage | undefined) =>
  message === undefined ? 0 : message.seq || Number.POSITIVE_INFINITY;

function between(changes: readonly ConversationChange[], after: number, before: number) {
  const found = changes.filter(({ seq }) => seq > after && seq < before);
  return found.length > 0 ? found : NO_CHANGES;
}

/** How many rows stand as they are: the last of those that are the same may have ended a run. */
function sameRows(messages: readonly LocalMessage[], made: readonly Row[]): number {
  let same = 0;
  while (same < made.length && made[same]?.message === messages[same]) same++;
  return Math.max(0, same - 1);
}

/** A message of one's own keeps its key when it gets its id. */
const keyOf = ({ id, client_msg_id, sender }: LocalMessage, me: string) =>
  sender.username === me && client_msg_id !== null ? client_msg_id : id;

const isUnread = ({ seq, sender }: LocalMessage, me: string, readUpTo: number) =>
  seq > readUpTo && sender.username !== me;

const inSameRun = (one: LocalMessage | undefined, next: LocalMessage) =>
  one !== undefined &&
  one.sender.username === next.sender.username &&
  next.reply_to_id === null &&
  Date.parse(next.created_at) - Date.parse(one.created_at) < RUN_GAP_MS;

/** The latest answers to messages that were edited after these answers began. */
export function outdatedAnswers(messages: readonly LocalMessage[]): ReadonlySet<string> {
  const editedAt = new Map<string, string>();
  for (const { id, edited_at } of messages) if (edited_at) editedAt.set(id, edited_at);
  if (editedAt.size === 0) return NONE;
  const latest = new Map<string, LocalMessage>();
  for (const message of messages) {
    const trigger = message.turn?.triggered_by;
    if (trigger && editedAt.has(trigger))
      latest.set(`${trigger} ${message.sender.username}`, message);
  }
  const outdated = [...latest.values()].filter(
    ({ turn, created_at }) => created_at < (editedAt.get(turn?.triggered_by ?? "") ?? ""),
  );
  return new Set(outdated.map(({ id }) => id));
}

const NONE: ReadonlySet<string> = new Set();
