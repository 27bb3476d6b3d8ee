import { Conflict } from "../postgres/transaction.ts";
import type { Methods, Unit } from "../postgres/unit.ts";
import { json, NOW, raw } from "../sql.ts";
import type { HotTurnWrites, NewChunk } from "../turns.ts";

/** When the row of a node that is gone is deleted. */
const FORGET_NODE_MS = 60 * 60_000;

export const hotTurnWrites: Methods<keyof HotTurnWrites> = {
  appendChunks,
  renewNode: async (unit, node, leaseMs) => {
    await unit.write`
      INSERT INTO nodes (id, alive_until) VALUES (${node}, ${NOW} + ${leaseMs}::bigint)
      ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until`;
    await unit.write`DELETE FROM nodes WHERE alive_until < ${NOW} - ${raw(FORGET_NODE_MS)}`;
  },
};

/**
 * Locks the turns, so that they cannot end before the chunks are stored. It does not wait for locks: if
 * another transaction has locked one of the turns, the whole unit runs again. A chunk that does not
 * continue the stored text is not stored. That happens when a crash of PostgreSQL lost the last chunks.
 */
async function appendChunks(unit: Unit, node: string, chunks: readonly NewChunk[]) {
  const rows = await unit.write<{ turn_id: number; kept: boolean; busy: boolean | null }>`
    WITH given AS (
      SELECT * FROM jsonb_to_recordset(${json(chunks)}::jsonb) AS g (turn_id bigint, text text,
        "offset" bigint, first boolean, at bigint)
    ), live AS (
      SELECT t.id, t.message_id FROM turns t
      WHERE t.id IN (SELECT turn_id FROM given) AND t.status = 'running' AND t.node = ${node}
      FOR SHARE SKIP LOCKED
    ), next AS (
      SELECT l.id, l.message_id, g.offset, g.text FROM given g JOIN live l ON l.id = g.turn_id
      WHERE g.offset - octet_length(g.text) = coalesce(
        (SELECT max(c.byte_offset) FROM chunks c WHERE c.message_id = l.message_id), 0)
    ), kept AS (
      INSERT INTO chunks (message_id, byte_offset, text) SELECT message_id, "offset", text FROM next
    )
    SELECT g.turn_id, n.id IS NOT NULL AS kept,
      l.id IS NULL AND t.status = 'running' AND t.node IS NOT DISTINCT FROM ${node} AS busy
    FROM given g LEFT JOIN live l ON l.id = g.turn_id LEFT JOIN next n ON n.id = g.turn_id
    LEFT JOIN turns t ON t.id = g.turn_id`;
  const held = rows.find(({ busy }) => busy);
  if (held) throw new Conflict(`turns:${held.turn_id}`);
  const first = chunks.filter((chunk) => chunk.first);
  if (first.length > 0) {
    unit.changesUnowned();
    const ids = first.map((chunk) => chunk.turn_id);
    await unit.write`
      UPDATE turns SET first_token_at = ${(first[0] as NewChunk).at}
      WHERE id = ANY(${ids}::bigint[]) AND node = ${node} AND first_token_at IS NULL`;
  }
  return rows.filter(({ kept }) => !kept).map(({ turn_id }) => turn_id);
}
