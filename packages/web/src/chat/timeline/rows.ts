import type { LocalMessage, MessageWindow } from "@parley/client";
import type { ConversationChange } from "@parley/protocol";
import { type Day, dayAround } from "../../lib/time.ts";
import { inReadingOrder } from "../../tools/questions.ts";

/** A message, and what is shown above and below it. */
export interface Row {
  key: string;
  message: LocalMessage;
  /** The start of the day that begins with the message, in milliseconds. */
  day: Day["from"] | null;
  /** Changes of the group between the previous message and this one. */
  changes: readonly ConversationChange[];
  /** Changes after the latest message. */
  changesAfter: readonly ConversationChange[];
  /** The «New messages» line stands above it. */
  isFirstUnread: boolean;
  /** Whether it is the first and the last of a run of messages by one sender. */
  first: boolean;
  last: boolean;
}

/** Messages further apart begin a new run. */
const RUN_GAP_MS = 5 * 60_000;

/**
 * Builds the rows of a list of messages. Separators are part of the row of a message, so that every row
 * has a stable key. Reuses the previous rows of messages that have not changed.
 */
export function rowsOf(
  { items, changes }: Pick<MessageWindow, "items" | "changes">,
  me: string,
  readUpTo: number | null,
  previousRows: readonly Row[] = [],
): Row[] {
  const messages = inReadingOrder(items);
  const rows = previousRows.slice(0, reusableRows(messages, previousRows));
  let previous = rows.at(-1)?.message;
  /** The highest `seq` so far: a turn stands below later messages, in which its tool asks. */
  let upTo = Math.max(0, ...rows.map(({ message }) => seqOf(message)));
  let day: Day | null = previous ? dayAround(Date.parse(previous.created_at)) : null;
  let hasLine = readUpTo === null || rows.some((row) => row.isFirstUnread);
  for (const message of messages.slice(rows.length)) {
    const at = Date.parse(message.created_at);
    const newDay = !day || at < day.from || at >= day.to ? dayAround(at) : null;
    day = newDay ?? day;
    const isFirstUnread = !hasLine && isUnread(message, me, readUpTo ?? 0);
    hasLine ||= isFirstUnread;
    const above = between(changes, upTo, seqOf(message));
    upTo = Math.max(upTo, seqOf(message));
    const first =
      newDay !== null || isFirstUnread || above.length > 0 || !inSameRun(previous, message);
    const before = rows.at(-1);
    if (before) before.last = first;
    rows.push({
      key: keyOf(message, me),
      message,
      day: newDay?.from ?? null,
      changes: above,
      changesAfter: NO_CHANGES,
      isFirstUnread,
      first,
      last: true,
    });
    previous = message;
  }
  const latest = rows.at(-1);
  if (latest) latest.changesAfter = between(changes, upTo, Number.POSITIVE_INFINITY);
  return rows;
}

/** Whether the first unread message is older than the loaded ones. */
export const isFirstUnreadOlder = (
  { items, hasOlder }: Pick<MessageWindow, "items" | "hasOlder">,
  readUpTo: number,
): boolean => hasOlder && (items[0]?.seq ?? 0) > readUpTo + 1;

/** Whether two rows of a message show the same above its text. */
export const hasSameTop = (one: Row, other: Row): boolean =>
  one.day === other.day &&
  one.changes.length === other.changes.length &&
  one.isFirstUnread === other.isFirstUnread &&
  one.first === other.first;

const NO_CHANGES: readonly ConversationChange[] = [];

/** The `seq` of a message. Messages that are not sent yet come last. */
const seqOf = ({ seq }: LocalMessage) => seq || Number.POSITIVE_INFINITY;

function between(changes: readonly ConversationChange[], after: number, before: number) {
  // What a product stores with a group concerns its programs.
  const found = changes.filter(
    ({ seq, kind }) => seq > after && seq < before && kind !== "metadata_changed",
  );
  return found.length > 0 ? found : NO_CHANGES;
}

/** The number of rows to reuse: all with the same message but the last, whose run may go on. */
function reusableRows(messages: readonly LocalMessage[], rows: readonly Row[]): number {
  let same = 0;
  while (same < rows.length && rows[same]?.message === messages[same]) same++;
  return Math.max(0, same - 1);
}

/** A message of one's own keeps its key when the server assigns its id. */
const keyOf = ({ id, client_msg_id, sender }: LocalMessage, me: string) =>
  sender.username === me && client_msg_id !== null ? client_msg_id : id;

export const isUnread = ({ seq, sender }: LocalMessage, me: string, readUpTo: number) =>
  seq > readUpTo && sender.username !== me;

const inSameRun = (one: LocalMessage | undefined, next: LocalMessage) =>
  one !== undefined &&
  (continues(one, next) ||
    (one.sender.username === next.sender.username &&
      next.reply_to_id === null &&
      Date.parse(next.created_at) - Date.parse(one.created_at) < RUN_GAP_MS));

/** Whether an agent goes on in a new message, however long its owner took to decide. */
const continues = (one: LocalMessage, { turn }: LocalMessage) =>
  turn?.continues !== undefined && turn.continues === one.id;

/** The ids of the latest answers to messages that were edited after the answer began. */
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

/**
 * The answers that the same agent has replaced by a later one to the same message, by the ids of their
 * messages: «1 of 2». An answer that continues after a decision has several messages.
 */
export function earlierAnswers(messages: readonly LocalMessage[]): ReadonlyMap<string, string> {
  const questions = new Map<string, string[][]>();
  for (const { id, sender, turn } of messages) {
    if (!turn) continue;
    const { triggered_by, continues: before } = turn;
    const key = `${triggered_by} ${sender.username}`;
    const answers = questions.get(key) ?? [];
    questions.set(key, answers);
    const continued = before && answers.find((ids) => ids.includes(before));
    if (continued) continued.push(id);
    else answers.push([id]);
  }
  const earlier = new Map<string, string>();
  for (const answers of questions.values()) {
    for (const [index, ids] of answers.slice(0, -1).entries()) {
      for (const id of ids) earlier.set(id, `${index + 1} of ${answers.length}`);
    }
  }
  return earlier;
}

/**
 * The ids of the first messages of other people, while one has not written oneself. Whoever they are,
 * they are strangers in this conversation, and anybody can choose any display name.
 */
export function strangersFirstMessages(
  messages: readonly LocalMessage[],
  me: string,
): ReadonlySet<string> {
  if (messages.some(({ sender }) => sender.username === me)) return NONE;
  const first = new Map<string, string>();
  for (const { id, sender } of messages) {
    const isNamedSo = sender.display_name.toLowerCase() === sender.username;
    if (sender.kind === "agent" || isNamedSo || first.has(sender.username)) continue;
    first.set(sender.username, id);
  }
  return new Set(first.values());
}

const NONE: ReadonlySet<string> = new Set();
