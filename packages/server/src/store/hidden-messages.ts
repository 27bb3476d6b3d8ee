import { incrementOwnCounter, ownCounter } from "./counters.ts";
import { removeMentionOf } from "./mentions.ts";
import { countsIn, type MessageRecord } from "./message-records.ts";
import { raw, type Sql } from "./sql.ts";

const HIDDEN_PER_PAGE = 1000;

/** Messages that an account has deleted for itself alone. */
export const hiddenMessageReads = {
  /** Whether the message does not exist for the account: it has hidden it, or cleared the conversation. */
  isHidden: (db: Sql, { conversation_id, seq }: MessageRecord, accountId: number) =>
    db.exists`
      SELECT 1 FROM hidden
      WHERE account_id = ${accountId} AND conversation_id = ${conversation_id} AND seq = ${seq}
      UNION ALL SELECT 1 FROM members
      WHERE account_id = ${accountId} AND conversation_id = ${conversation_id}
        AND cleared_seq >= ${seq}`,
  /**
   * A page of what an account hid after a value of its own counter. Without `since` the page is empty
   * and `seq` is the current value, to start from. Messages that were hidden in one call share a counter
   * value and are never split: they are far fewer than a page.
   */
  async hiddenSince(db: Sql, accountId: number, since: number | undefined): Promise<Hidden> {
    const [current, rows] = await Promise.all([
      ownCounter(db, accountId),
      since === undefined ? [] : hiddenRows(db, accountId, since),
    ]);
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
  },
};

export const hiddenMessageWrites = {
  /**
   * Hides messages from one account. Conversations' counters stay; the account's own is incremented
   * once for all of them and returned. Returns null, and changes nothing, when all of them are hidden
   * already, or there are none.
   */
  async hideMessages(db: Sql, messages: readonly MessageRecord[], accountId: number) {
    await db.ownRow("accounts", accountId);
    const own_seq = (await ownCounter(db, accountId)) + 1;
    let hidden = 0;
    for (const message of messages) hidden += await hideMessage(db, message, accountId, own_seq);
    return hidden === 0 ? null : incrementOwnCounter(db, accountId);
  },
};

/** Returns how many messages it has hidden: one, or zero when it was hidden already. */
async function hideMessage(db: Sql, message: MessageRecord, accountId: number, ownSeq: number) {
  const { conversation_id, seq } = message;
  db.changes(conversation_id);
  const hidden = await db.change`
    INSERT INTO hidden (account_id, conversation_id, seq, at_seq, own_seq)
    SELECT ${accountId}, ${conversation_id}, ${seq}, seq, ${ownSeq} FROM counters
    WHERE conversation_id = ${conversation_id} ON CONFLICT DO NOTHING`;
  if (hidden === 0) return 0;
  const { humans, agents } = countsIn(message);
  // If the account has not read the message, it is no longer unread.
  await db.change`
    UPDATE members SET read_humans = read_humans + ${humans}, read_agents = read_agents + ${agents}
    WHERE conversation_id = ${conversation_id} AND account_id = ${accountId}
      AND last_read_seq < ${seq}`;
  await removeMentionOf(db, accountId, message);
  return hidden;
}

/** A page of hidden messages. The next page starts after `seq`. */
export interface Hidden {
  hidden: { conversation_id: string; ids: string[] }[];
  seq: number;
  has_more: boolean;
}

interface HiddenRow {
  conversation_id: string;
  id: string;
  own_seq: number;
}

/** One more than a page. Live and deleted messages have an index each. */
const hiddenRows = (db: Sql, accountId: number, since: number) => db.all<HiddenRow>`
  SELECT c.uuid AS conversation_id, coalesce(live.uuid, dead.uuid) AS id, h.own_seq
  FROM hidden h JOIN conversations c ON c.id = h.conversation_id
  LEFT JOIN messages live ON live.conversation_id = h.conversation_id AND live.seq = h.seq
    AND live.deleted_at IS NULL
  LEFT JOIN messages dead ON dead.conversation_id = h.conversation_id AND dead.seq = h.seq
    AND dead.deleted_at IS NOT NULL
  WHERE h.account_id = ${accountId} AND h.own_seq > ${since}
  ORDER BY h.own_seq LIMIT ${raw(HIDDEN_PER_PAGE + 1)}`;
