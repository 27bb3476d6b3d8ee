import { iso } from "../rows.ts";
import type { ReadTx, WriteTx } from "../store.ts";
import type { Connection } from "./connection.ts";
import { counterStep } from "./messages.ts";

type Reads = Pick<ReadTx, "reaction">;
type Writes = Pick<WriteTx, "addReaction" | "removeReaction">;

export function reactionReads(db: Connection): Reads {
  const find = db.query<{ created_at: number }>(
    "SELECT created_at FROM reactions WHERE message_id = ? AND account_id = ? AND emoji = ?",
  );
  return {
    reaction: (message, reactor, emoji) => {
      const row = find.get(message.id, reactor.id, emoji);
      if (!row) return null;
      const { username, kind, display_name } = reactor;
      return {
        message_id: message.uuid,
        reactor: { username, kind, display_name },
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
