import type { Methods } from "../sqlite/sql.ts";
import type { HotTurnWrites } from "../turns.ts";

export const hotTurnWrites: Methods<keyof HotTurnWrites> = {
  appendChunks: (db, node, chunks) => {
    db.changesUnowned();
    return chunks
      .filter(({ turn_id, text, offset, first, at }) => {
        const answer = db.get<{ message_id: number }>(PLACE, [turn_id, offset, text, node]);
        if (!answer) return true;
        db.change(INSERT, [answer.message_id, offset, text]);
        if (first) db.change(SET_FIRST_TOKEN, [turn_id, at]);
        return false;
      })
      .map(({ turn_id }) => turn_id);
  },
  // There are no others who would ask.
  renewNode: () => {},
};

/** Apart from the insertion: a statement that reads the table it inserts into needs a temporary one. */
const PLACE = `SELECT message_id FROM turns t WHERE id = $1 AND status = 'running' AND node = $4
  AND $2 - octet_length($3) = coalesce(
    (SELECT max(c.byte_offset) FROM chunks c WHERE c.message_id = t.message_id), 0)`;

const INSERT = "INSERT INTO chunks (message_id, byte_offset, text) VALUES ($1, $2, $3)";

const SET_FIRST_TOKEN =
  "UPDATE turns SET first_token_at = $2 WHERE id = $1 AND first_token_at IS NULL";
