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
import type { Connection } from "./connection.ts";
import { incrementCounter } from "./counters.ts";

export function reactionReads(db: Connection): ReactionReads {
  const find = db.query<{ created_at: number }>(
    "SELECT created_at FROM reactions WHERE message_id = ? AND account_id = ? AND emoji = ?",
  );
  const list = db.query<ReactionRow>(REACTIONS);
  const byAccount = db.query<ReactionRecord>(
    `${REACTION_RECORDS} WHERE r.account_id = ? AND r.id > ? ORDER BY r.id LIMIT ?`,
  );
  const emojiOf = db.query<{ emoji: string }>(
    "SELECT DISTINCT emoji FROM reactions WHERE message_id = ?",
  );
  const own = db.query<{ count: number }>(
    "SELECT count(*) AS count FROM reactions WHERE message_id = ? AND account_id = ?",
  );
  return {
    reactionCounts: (message, accountId) => ({
      emoji: emojiOf.all(message.id).map(({ emoji }) => emoji),
      own: own.get(message.id, accountId)?.count ?? 0,
    }),
    reactions: ({ message, emoji, after, limit }) =>
      list
        .all(message.id, after ?? 0, emoji ?? null, limit)
        .map((row) => toPlacedReaction(message, row)),
    reactionsBy: ({ accountId, after, limit }) => byAccount.all(accountId, after, limit),
    reaction: (message, reactor, emoji) => {
      const row = find.get(message.id, reactor.id, emoji);
      return row && toReaction(message, reactor, { emoji, ...row });
    },
  };
}

export function reactionWrites(db: Connection): ReactionWrites {
  const increment = incrementCounter(db);
  const insert = db.change(INSERT_REACTION);
  const remove = db.change(
    "DELETE FROM reactions WHERE message_id = ? AND account_id = ? AND emoji = ?",
  );
  const updateMessage = db.change(
    "UPDATE messages SET reactions = reactions + ?2, version = ?3 WHERE id = ?1",
  );
  return {
    addReaction: (message, { reactor, emoji, at }) => {
      const { changes } = insert.run(message.id, reactor.id, emoji, at);
      if (changes === 0) throw repeatedReaction(message);
      const version = increment(message.conversation_id);
      updateMessage.run(message.id, 1, version);
      return version;
    },
    removeReaction: (message, reactorId, emoji) => {
      const { changes } = remove.run(message.id, reactorId, emoji);
      if (changes === 0) throw missingReaction(message);
      const version = increment(message.conversation_id);
      updateMessage.run(message.id, -1, version);
      return version;
    },
  };
}
