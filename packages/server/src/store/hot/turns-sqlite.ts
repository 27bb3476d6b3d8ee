import type { CheckedConnection } from "../sqlite/sql.ts";
import type { HotTurnWrites } from "../turns.ts";

export function hotTurnWrites(db: CheckedConnection): HotTurnWrites {
  // Apart from the insertion: a statement that reads the table it inserts into needs a temporary one.
  const place = db.query<{ message_id: number }>(
    `SELECT message_id FROM turns t WHERE id = ?1 AND status = 'running' AND node = ?4
       AND ?2 - octet_length(?3) = coalesce(
         (SELECT max(c.byte_offset) FROM chunks c WHERE c.message_id = t.message_id), 0)`,
  );
  const insert = db.change("INSERT INTO chunks (message_id, byte_offset, text) VALUES (?, ?, ?)");
  const setFirstToken = db.change(
    "UPDATE turns SET first_token_at = ?2 WHERE id = ?1 AND first_token_at IS NULL",
  );

  return {
    appendChunks: (node, chunks) => {
      db.changesUnowned();
      return chunks
        .filter(({ turn_id, text, offset, first, at }) => {
          const answer = place.get(turn_id, offset, text, node);
          if (!answer) return true;
          insert.run(answer.message_id, offset, text);
          if (first) setFirstToken.run(turn_id, at);
          return false;
        })
        .map(({ turn_id }) => turn_id);
    },
    // There are no others who would ask.
    renewNode: () => {},
  };
}
