import type { HiddenMessageReads, HiddenMessageWrites } from "../hidden-messages.ts";
import {
  DISCOUNT_HIDDEN,
  HIDDEN_PER_PAGE,
  HIDE_MESSAGE,
  type HiddenRow,
  toHidden,
} from "../shared/hidden-messages.ts";
import { countsIn } from "../shared/messages.ts";
import { mentionWrites } from "./mentions.ts";
import { incrementOwnCounter, ownCounter } from "./own-counter.ts";
import type { Methods } from "./unit.ts";

export const hiddenMessageReads: Methods<keyof HiddenMessageReads> = {
  hiddenSince: async (unit, accountId, since) => {
    const [own_seq, rows] = await Promise.all([
      ownCounter(unit, accountId),
      since === undefined
        ? []
        : unit.all<HiddenRow>(
            `SELECT c.uuid AS conversation_id, m.uuid AS id, h.own_seq FROM hidden h
             JOIN messages m ON m.conversation_id = h.conversation_id AND m.seq = h.seq
             JOIN conversations c ON c.id = h.conversation_id
             WHERE h.account_id = $1 AND h.own_seq > $2
             ORDER BY h.own_seq LIMIT ${HIDDEN_PER_PAGE + 1}`,
            accountId,
            since,
          ),
    ]);
    return toHidden(rows, own_seq);
  },
  isHidden: async (unit, message, accountId) =>
    (await unit.get(
      "SELECT 1 FROM hidden WHERE account_id = $1 AND conversation_id = $2 AND seq = $3",
      accountId,
      message.conversation_id,
      message.seq,
    )) !== null,
};

export const hiddenMessageWrites: Methods<keyof HiddenMessageWrites> = {
  hideMessages: async (unit, messages, accountId) => {
    for (const { conversation_id } of messages) await unit.own(conversation_id);
    await unit.ownRow("accounts", accountId);
    const own_seq = (await ownCounter(unit, accountId)) + 1;
    let hidden = 0;
    for (const message of messages) {
      const { conversation_id, seq } = message;
      const { count } = await unit.write(HIDE_MESSAGE, accountId, conversation_id, seq, own_seq);
      if (count === 0) continue;
      hidden++;
      const { humans, agents } = countsIn(message);
      await unit.write(DISCOUNT_HIDDEN, conversation_id, accountId, seq, humans, agents);
      await mentionWrites.removeOne(unit, accountId, conversation_id, seq);
    }
    return hidden === 0 ? null : incrementOwnCounter(unit, accountId);
  },
};
