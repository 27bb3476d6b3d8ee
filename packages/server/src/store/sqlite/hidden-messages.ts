import type { HiddenMessageReads, HiddenMessageWrites } from "../hidden-messages.ts";
import {
  DISCOUNT_HIDDEN,
  HIDDEN_PER_PAGE,
  HIDE_MESSAGE,
  type HiddenRow,
  toHidden,
} from "../shared/hidden-messages.ts";
import { countsIn } from "../shared/messages.ts";
import type { Connection } from "./connection.ts";
import { mentionWrites } from "./mentions.ts";
import { incrementOwnCounter, ownCounter } from "./own-counter.ts";

export function hiddenMessageReads(db: Connection): HiddenMessageReads {
  const hidden = db.query(
    "SELECT 1 FROM hidden WHERE account_id = ? AND conversation_id = ? AND seq = ?",
  );
  const since = db.query<HiddenRow>(
    // Live and deleted messages have an index each.
    `SELECT c.uuid AS conversation_id, coalesce(live.uuid, dead.uuid) AS id, h.own_seq
     FROM hidden h JOIN conversations c ON c.id = h.conversation_id
     LEFT JOIN messages live ON live.conversation_id = h.conversation_id AND live.seq = h.seq
       AND live.deleted_at IS NULL
     LEFT JOIN messages dead ON dead.conversation_id = h.conversation_id AND dead.seq = h.seq
       AND dead.deleted_at IS NOT NULL
     WHERE h.account_id = ? AND h.own_seq > ? ORDER BY h.own_seq LIMIT ${HIDDEN_PER_PAGE + 1}`,
  );
  const ownSeq = ownCounter(db);
  return {
    isHidden: (message, accountId) =>
      hidden.get(accountId, message.conversation_id, message.seq) !== null,
    hiddenSince: (accountId, after) =>
      toHidden(after === undefined ? [] : since.all(accountId, after), ownSeq(accountId)),
  };
}

export function hiddenMessageWrites(db: Connection): HiddenMessageWrites {
  const hide = db.change(HIDE_MESSAGE);
  const discountUnread = db.change(DISCOUNT_HIDDEN);
  const ownSeq = ownCounter(db);
  const increment = incrementOwnCounter(db);
  const mentions = mentionWrites(db);
  return {
    hideMessages: (messages, accountId) => {
      const own_seq = ownSeq(accountId) + 1;
      let hidden = 0;
      for (const message of messages) {
        const { conversation_id, seq } = message;
        if (hide.run(accountId, conversation_id, seq, own_seq).changes === 0) continue;
        hidden++;
        const { humans, agents } = countsIn(message);
        discountUnread.run(conversation_id, accountId, seq, humans, agents);
        mentions.removeOne(accountId, conversation_id, seq);
      }
      return hidden === 0 ? null : increment(accountId);
    },
  };
}
