import type { ReactionReads, ReactionRecord, ReactionWrites } from "../reactions.ts";
import {
  INSERT_REACTION,
  missingReaction,
  REACTION_RECORDS,
  REACTIONS,
  type ReactionRow,
  repeatedReaction,
  toPlacedReaction,
  toReaction,
} from "../shared/reactions.ts";
import { incrementCounter } from "./counters.ts";
import type { Methods, Unit } from "./unit.ts";

export const reactionReads: Methods<keyof ReactionReads> = {
  reactionCounts: async (unit, message, accountId) => {
    await unit.own(message.conversation_id);
    const rows = await unit.all<{ emoji: string; own: number }>(
      `SELECT emoji, count(*) FILTER (WHERE account_id = $2) AS own FROM reactions
       WHERE message_id = $1 GROUP BY emoji`,
      message.id,
      accountId,
    );
    return {
      emoji: rows.map(({ emoji }) => emoji),
      own: rows.reduce((sum, { own }) => sum + own, 0),
    };
  },
  reactions: async (unit, { message, emoji, after, limit }) => {
    const rows = await unit.all<ReactionRow>(
      REACTIONS,
      message.id,
      after ?? 0,
      emoji ?? null,
      limit,
    );
    return rows.map((row) => toPlacedReaction(message, row));
  },
  reactionsBy: (unit, { accountId, after, limit }) =>
    unit.all<ReactionRecord>(
      `${REACTION_RECORDS} WHERE r.account_id = $1 AND r.id > $2 ORDER BY r.id LIMIT $3`,
      accountId,
      after,
      limit,
    ),
  reaction: async (unit, message, reactor, emoji) => {
    const row = await unit.get<{ created_at: number }>(
      "SELECT created_at FROM reactions WHERE message_id = $1 AND account_id = $2 AND emoji = $3",
      message.id,
      reactor.id,
      emoji,
    );
    return row && toReaction(message, reactor, { emoji, ...row });
  },
};

export const reactionWrites: Methods<keyof ReactionWrites> = {
  addReaction: async (unit, message, { reactor, emoji, at }) => {
    const version = await incrementCounter(unit, message.conversation_id);
    const [added] = await Promise.all([
      unit.change(INSERT_REACTION, message.id, reactor.id, emoji, at),
      updateMessage(unit, message.id, 1, version),
    ]);
    if (added.count === 0) throw repeatedReaction(message);
    return version;
  },
  removeReaction: async (unit, message, reactorId, emoji) => {
    const version = await incrementCounter(unit, message.conversation_id);
    const [removed] = await Promise.all([
      unit.change(
        "DELETE FROM reactions WHERE message_id = $1 AND account_id = $2 AND emoji = $3",
        message.id,
        reactorId,
        emoji,
      ),
      updateMessage(unit, message.id, -1, version),
    ]);
    if (removed.count === 0) throw missingReaction(message);
    return version;
  },
};

const updateMessage = (unit: Unit, messageId: number, by: number, version: number) =>
  unit.change(
    "UPDATE messages SET reactions = reactions + $2, version = $3 WHERE id = $1",
    messageId,
    by,
    version,
  );
