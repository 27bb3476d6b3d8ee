import {
  MESSAGE,
  MESSAGE_TABLES,
  type MessageRow,
  NOT_HIDDEN,
  VISIBLE_MESSAGES,
} from "./messages.ts";

/** The messages after a value of the counter that never changed, in their order. */
export const CREATED_MESSAGES = `${VISIBLE_MESSAGES} AND m.seq > $3 AND m.version = m.seq
  ORDER BY m.seq LIMIT $4`;

/** The messages that changed after a value of the counter and up to another, in that order. */
export const CHANGED_MESSAGES = `SELECT ${MESSAGE} FROM ${MESSAGE_TABLES}
  WHERE m.conversation_id = $1 AND m.version > m.seq AND m.version > $3 AND m.version <= $5
    AND (m.deleted_at IS NOT NULL OR ${NOT_HIDDEN}) ORDER BY m.version LIMIT $4`;

/** Larger than any counter value. */
export const LAST_SEQ = Number.MAX_SAFE_INTEGER;

type Row = Pick<MessageRow, "id" | "uuid" | "version" | "deleted_at">;

interface Found<Message extends Row, Change extends { seq: number }> {
  /** The first `limit + 1` messages of each kind after the start, ordered by version. */
  created: readonly Message[];
  changed: readonly Message[];
  /** The first `limit + 1` changes of the group after the start. */
  changes: readonly Change[];
  /** The current value of the conversation's counter. */
  counter: number;
}

export interface UpdatesPage<Message extends Row, Change extends { seq: number }> {
  messages: Message[];
  changes: Change[];
  /** Where the page ends. */
  seq: number;
  has_more: boolean;
}

/** Cuts a page off what was found, in the order of the counter. */
export function updatesPage<Message extends Row, Change extends { seq: number }>(
  { created, changed, changes, counter }: Found<Message, Change>,
  limit: number,
): UpdatesPage<Message, Change> {
  const messages = [...created, ...changed].sort((one, other) => one.version - other.version);
  const seqs = [...messages.map(({ version }) => version), ...changes.map(({ seq }) => seq)];
  const end = seqs.sort((one, other) => one - other)[limit - 1];
  const has_more = seqs.length > limit && end !== undefined;
  const seq = has_more ? end : counter;
  return {
    messages: messages.filter(({ version }) => version <= seq),
    changes: changes.filter((change) => change.seq <= seq),
    seq,
    has_more,
  };
}

/**
 * Completes a page. `further` has, if there are more pages, all messages that changed at the page's
 * last counter value: one deletion of many messages is one change, and a page never ends inside it.
 * On the last page it has the messages that stream: their text grows without being counted.
 */
export function completePage<Message extends Row, Change extends { seq: number }>(
  { messages, ...page }: UpdatesPage<Message, Change>,
  further: readonly Message[],
) {
  const taken = new Set(messages.map(({ id }) => id));
  const all = [...messages, ...further.filter(({ id }) => !taken.has(id))];
  return {
    ...page,
    live: all.filter(({ deleted_at }) => deleted_at === null),
    deleted: all.filter(({ deleted_at }) => deleted_at !== null).map(({ uuid }) => uuid),
  };
}
