import type { Hidden } from "../hidden-messages.ts";

export const HIDDEN_PER_PAGE = 1000;

export const HIDE_MESSAGE = `INSERT INTO hidden (account_id, conversation_id, seq, at_seq, own_seq)
  SELECT $1, $2, $3, seq, $4 FROM counters WHERE conversation_id = $2 ON CONFLICT DO NOTHING`;

/** If the account has not read the message, it is no longer unread. */
export const DISCOUNT_HIDDEN = `UPDATE members
  SET read_humans = read_humans + $4, read_agents = read_agents + $5
  WHERE conversation_id = $1 AND account_id = $2 AND last_read_seq < $3`;

export interface HiddenRow {
  conversation_id: string;
  id: string;
  own_seq: number;
}

/**
 * `rows` are one more than a page, in the order in which they were hidden; `current` is the account's
 * own counter. Messages that were hidden in one call share a counter value and are never split: they
 * are far fewer than a page.
 */
export function toHidden(rows: readonly HiddenRow[], current: number): Hidden {
  const next = rows[HIDDEN_PER_PAGE]?.own_seq;
  const page = rows.filter(({ own_seq }) => next === undefined || own_seq < next);
  const byConversation = Map.groupBy(page, ({ conversation_id }) => conversation_id);
  return {
    hidden: [...byConversation].map(([conversation_id, messages]) => ({
      conversation_id,
      ids: messages.map(({ id }) => id),
    })),
    seq: next === undefined ? current : next - 1,
    has_more: next !== undefined,
  };
}
