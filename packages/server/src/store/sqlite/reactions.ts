import { publicAccount } from "../../domain/accounts.ts";
import { iso, placedReaction, type ReactionRow } from "../rows.ts";
import type { ReadTx, WriteTx } from "../store.ts";
import type { Connection } from "./connection.ts";
import { counterStep } from "./messages.ts";

type Reads = Pick<ReadTx, "reaction" | "reactions" | "reactionCounts">;
type Writes = Pick<WriteTx, "addReaction" | "removeReaction">;

export function reactionReads(db: Connection): Reads {
  const find = db.query<{ created_at: number }>(
    "SELECT created_at FROM reactions WHERE message_id = ? AND account_id = ? AND emoji = ?",
  );
  const list = db.query<ReactionRow>(
    `SELECT r.id, r.emoji, r.created_at, a.username, a.kind, a.display_name, a.version
     FROM reactions r JOIN accounts a ON a.id = r.account_id
     WHERE r.message_id = ?1 AND r.id > ?2 AND (?3 IS NULL OR r.emoji = ?3)
     ORDER BY r.id LIMIT ?4`,
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
        .map((row) => placedReaction(message.uuid, row)),
    reaction: (message, reactor, emoji) => {
      const row = find.get(message.id, reactor.id, emoji);
      if (!row) return null;
      return {
        message_id: message.uuid,
        reactor: publicAccount(reactor),
        emoji,
        created_at: iso(row.created_at),
      };
    },
  };
}

export function reactionWrites(db: Connection): Writes {
  const advance = counterStep(db);
  const insert = db.change(
    "INSERT INTO reactions (message_id, account_id, emoji, created_at) VALUES (?, ?, ?, ?)",
  );
  const remove = db.change(
    "DELETE FROM reactions WHERE message_id = ? AND account_id = ? AND emoji = ?",
  );
  const mark = db.change(
    "UPDATE messages SET reactions = reactions + ?2, version = ?3 WHERE id = ?1",
  );
  return {
    addReaction: (message, { reactor, emoji, at }) => {
      insert.run(message.id, reactor.id, emoji, at);
      const version = advance(message.conversation_id);
      mark.run(message.id, 1, version);
      return version;
    },
    removeReaction: (message, reactorId, emoji) => {
      remove.run(message.id, reactorId, emoji);
      const version = advance(message.conversation_id);
      mark.run(message.id, -1, version);
      return version;
    },
  };
}
