import type { Methods } from "../sqlite/sql.ts";
import type { HotTurnWrites } from "../turns.ts";

export const hotTurnWrites: Methods<keyof HotTurnWrites> = {
  appendChunks: (db, node, chunks) => {
    db.changesUnowned();
    return chunks
      .filter(({ turn_id, text, offset, first, at }) => {
        // Apart from the insertion: a statement that reads the table it inserts into needs a temporary one.
        const answer = db.get<{ message_id: number }>`
          SELECT message_id FROM turns t
          WHERE id = ${turn_id} AND status = 'running' AND node = ${node}
            AND ${offset} - octet_length(${text}) = coalesce(
              (SELECT max(c.byte_offset) FROM chunks c WHERE c.message_id = t.message_id), 0)`;
        if (!answer) return true;
        db.change`
          INSERT INTO chunks (message_id, byte_offset, text)
          VALUES (${answer.message_id}, ${offset}, ${text})`;
        if (first) {
          db.change`
            UPDATE turns SET first_token_at = ${at}
            WHERE id = ${turn_id} AND first_token_at IS NULL`;
        }
        return false;
      })
      .map(({ turn_id }) => turn_id);
  },
  // There are no others who would ask.
  renewNode: () => {},
};
