import { EXTERNAL_NODE } from "../../rules/agents.ts";
import { addMentions, toStoredMentions } from "../mentions.ts";
import { streamedTexts } from "../message-views.ts";
import {
  BEGIN_TURN,
  CLAIMABLE_TURNS,
  FINALIZE_MESSAGE,
  FINISH_TURN,
  FOLD_TURN,
  foldValues,
  INSERT_TURN,
  NEXT_EXTERNAL_TURN,
  NEXT_TURNS,
  OPEN_TURNS,
  offlineTurns,
  RESERVE_TURN,
  SET_ATTEMPT,
  TURN,
  type TurnHead,
  type TurnRow,
  toShownTurn,
  toTurn,
  turnValues,
} from "../shared/turns.ts";
import { newReservation, releasedUsage, settledUsage } from "../shared/usage.ts";
import { NOW } from "../sql.ts";
import type { FinishedTurn, NewChunk, TurnReads, TurnRecord, TurnWrites } from "../turns.ts";
import { incrementCounter } from "./counters.ts";
import { Conflict } from "./transaction.ts";
import { list, type Methods, type Unit } from "./unit.ts";
import { addUsage } from "./usage.ts";

const one = (row: TurnRow | null) => row && toTurn(row);

/** Nodes of earlier versions are not in the table: their turns have leases alone. */
const ABANDONED = `t.status = 'running' AND t.lease_until <= ${NOW} AND (t.node = $1
  OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = t.node AND n.alive_until > ${NOW}))`;

/** When the row of a node that is gone is deleted. */
const FORGET_NODE_MS = 60 * 60_000;

export const turnReads: Methods<keyof TurnReads> = {
  turn: async (unit, id) => {
    const place = await unit.get<{ conversation_id: number }>(
      "SELECT conversation_id FROM turns WHERE id = $1",
      id,
    );
    if (!place) return null;
    await unit.own(place.conversation_id);
    // Chunks are appended without owning the conversation: owning the turn holds them off.
    await unit.ownRow("turns", id);
    return one(await unit.get<TurnRow>(`${TURN} WHERE t.id = $1`, id));
  },
  turnOfMessage: async (unit, message) =>
    one(await unit.get<TurnRow>(`${TURN} WHERE t.message_id = $1`, message.id)),
  openTurns: async (unit, conversationId) => {
    await unit.own(conversationId);
    return (await unit.all<TurnRow>(OPEN_TURNS, conversationId)).map(toTurn);
  },
  conversationsWithOpenTurns: async (unit, ownerId) => {
    const rows = await unit.all<{ id: number }>(
      `SELECT DISTINCT t.conversation_id AS id FROM turns t JOIN accounts a ON a.id = t.agent_id
       WHERE a.owner_id = $1 AND t.status IN ('waiting', 'running')`,
      ownerId,
    );
    return rows.map(({ id }) => id);
  },
  streamed: async (unit, messageId) =>
    (await streamedTexts(unit, [messageId])).get(messageId) ?? "",
  streamedBytes: async (unit, messageId) => {
    const row = await unit.get<{ length: number | null }>(
      "SELECT max(byte_offset) AS length FROM chunks WHERE message_id = $1",
      messageId,
    );
    return row?.length ?? 0;
  },
  claimableTurns: async (unit, agentId, most) =>
    turnsOf(unit, await unit.all<TurnHead>(CLAIMABLE_TURNS, agentId, most)),
};

export const turnWrites: Methods<keyof TurnWrites> = {
  queueTurn: async (unit, turn) => {
    await unit.own(turn.conversation_id);
    if (turn.open_ended && (await unit.write(FOLD_TURN, ...foldValues(turn))).count > 0) return;
    await unit.write(INSERT_TURN, ...turnValues(turn));
  },
  dropTurns: async (unit, ids) => {
    if (ids.length === 0) return;
    const sql = "DELETE FROM turns WHERE id = ANY($1::bigint[]) AND status = 'waiting'";
    await unit.write(sql, list(ids));
  },
  claimTurns: async (unit, node, leaseMs, most, share = (waiting) => waiting) => {
    const waiting = await unit.all<TurnHead>(NEXT_TURNS, most);
    const mine = waiting.slice(0, share(waiting.length));
    const turns = await claimHeads(unit, mine, node, leaseMs);
    const more = turns.length < mine.length || mine.length === most;
    return { turns, more, left: waiting.length - mine.length };
  },
  claimExternalTurn: async (unit, { agentId, turnId }, leaseMs) => {
    const heads = await unit.all<TurnHead>(NEXT_EXTERNAL_TURN, agentId, turnId);
    const [turn = null] = await claimHeads(unit, heads, EXTERNAL_NODE, leaseMs);
    return { turn, busy: turn === null && heads.length > 0 };
  },
  claimOfflineTurns: async (unit, { offlineMs, unclaimedMs }, leaseMs, most) => {
    const since = { seen: `${NOW} - $2::bigint`, claimed: `(${NOW} - $3::bigint)` };
    const heads = await unit.all<TurnHead>(offlineTurns(since), most, offlineMs, unclaimedMs);
    return claimHeads(unit, heads, EXTERNAL_NODE, leaseMs);
  },
  abandonedTurns: async (unit, node) => {
    const found = await unit.all<TurnHead>(
      `SELECT id, conversation_id FROM turns t WHERE ${ABANDONED} ORDER BY id LIMIT 100`,
      node,
    );
    const rows = await claimFree(unit, found, (ids) =>
      unit.all<{ id: number }>(
        `SELECT id FROM turns t WHERE ${ABANDONED} AND id = ANY($2::bigint[]) ORDER BY id
         FOR UPDATE SKIP LOCKED`,
        node,
        ids,
      ),
    );
    return turnsOf(unit, rows);
  },
  adoptTurn: async (unit, id, node, leaseMs) => {
    const turn = await turnReads.turn(unit, id);
    if (turn) await addUsage(unit, releasedUsage(turn));
    await unit.write(
      `UPDATE turns SET node = $2, lease_until = ${NOW} + $3, reserved = 0, estimated_input = 0,
         input_tokens = NULL WHERE id = $1`,
      id,
      node,
      leaseMs,
    );
  },
  renewNode: async (unit, node, leaseMs) => {
    await unit.write(
      `INSERT INTO nodes (id, alive_until) VALUES ($1, ${NOW} + $2::bigint)
       ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until`,
      node,
      leaseMs,
    );
    await unit.write(`DELETE FROM nodes WHERE alive_until < ${NOW} - ${FORGET_NODE_MS}`);
  },
  renewLeases: async (unit, node, ids, leaseMs) => {
    // A renewal waits for no lock: nobody takes over a turn that a transaction of this node is changing.
    const mode = leaseMs > 0 ? "SKIP LOCKED" : "";
    await unit.write(
      `UPDATE turns SET lease_until = ${NOW} + $2
       WHERE id IN (SELECT id FROM turns
         WHERE status = 'running' AND node = $1 AND id = ANY($3::bigint[])
         ORDER BY id FOR UPDATE ${mode})`,
      node,
      leaseMs,
      list(ids),
    );
  },
  beginTurn: async (unit, id, { messageUuid, model, at }) => {
    await unit.write(BEGIN_TURN, id, messageUuid, model, at);
  },
  reserveTurn: async (unit, turn, reservation) => {
    const { input_tokens, context_ids, by_operator } = reservation;
    const { reserved, usage } = newReservation(turn, reservation);
    await addUsage(unit, usage);
    await unit.write(RESERVE_TURN, turn.id, reserved, input_tokens, context_ids, by_operator);
  },
  setRounds: async (unit, id, rounds) => {
    await unit.write("UPDATE turns SET rounds = $2 WHERE id = $1", id, rounds);
  },
  setAttempt: async (unit, id, { tries, input_tokens }) => {
    await unit.write(SET_ATTEMPT, id, tries, input_tokens);
  },
  appendChunks,
  finishTurn,
};

/** Claims those of these turns whose conversations no other transaction holds at this moment. */
async function claimHeads(
  unit: Unit,
  heads: readonly TurnHead[],
  node: string,
  leaseMs: number,
): Promise<TurnRecord[]> {
  const rows = await claimFree(unit, heads, (ids) =>
    unit.write<{ id: number }>(
      `UPDATE turns SET status = 'running', node = $2, lease_until = ${NOW} + $3
       WHERE id = ANY($1::bigint[]) AND status = 'waiting' AND NOT EXISTS (
         SELECT 1 FROM turns r WHERE r.status = 'running' AND r.agent_id = turns.agent_id
           AND r.conversation_id = turns.conversation_id) RETURNING id`,
      ids,
      node,
      leaseMs,
    ),
  );
  return turnsOf(unit, rows);
}

/** Claims the candidates whose conversations no other transaction holds at this moment. */
async function claimFree(
  unit: Unit,
  candidates: readonly TurnHead[],
  claim: (ids: string) => Promise<readonly { id: number }[]>,
): Promise<readonly { id: number }[]> {
  const owned = await unit.ownFree(candidates.map((one) => one.conversation_id));
  const free = candidates.filter((one) => owned.includes(one.conversation_id));
  return free.length === 0 ? [] : claim(list(free.map((one) => one.id)));
}

async function turnsOf(unit: Unit, rows: readonly { id: number }[]): Promise<TurnRecord[]> {
  if (rows.length === 0) return [];
  const ids = list(rows.map((row) => row.id));
  const turns = await unit.all<TurnRow>(
    `${TURN} WHERE t.id = ANY($1::bigint[]) ORDER BY t.id`,
    ids,
  );
  return turns.map(toTurn);
}

/**
 * Locks the turns, so that they cannot end before the chunks are stored. It does not wait for locks: if
 * another transaction has locked one of the turns, the whole unit runs again. A chunk that does not
 * continue the stored text is not stored. That happens when a crash of PostgreSQL lost the last chunks.
 */
const APPEND = `WITH given AS (
    SELECT * FROM jsonb_to_recordset($1::jsonb) AS g (turn_id bigint, text text, "offset" bigint,
      first boolean, at bigint)
  ), live AS (
    SELECT t.id, t.message_id FROM turns t
    WHERE t.id IN (SELECT turn_id FROM given) AND t.status = 'running' AND t.node = $2
    FOR SHARE SKIP LOCKED
  ), next AS (
    SELECT l.id, l.message_id, g.offset, g.text FROM given g JOIN live l ON l.id = g.turn_id
    WHERE g.offset - octet_length(g.text) = coalesce(
      (SELECT max(c.byte_offset) FROM chunks c WHERE c.message_id = l.message_id), 0)
  ), kept AS (
    INSERT INTO chunks (message_id, byte_offset, text) SELECT message_id, "offset", text FROM next
  )
  SELECT g.turn_id, n.id IS NOT NULL AS kept,
    l.id IS NULL AND t.status = 'running' AND t.node IS NOT DISTINCT FROM $2 AS busy
  FROM given g LEFT JOIN live l ON l.id = g.turn_id LEFT JOIN next n ON n.id = g.turn_id
  LEFT JOIN turns t ON t.id = g.turn_id`;

async function appendChunks(
  unit: Unit,
  node: string,
  chunks: readonly NewChunk[],
): Promise<number[]> {
  const rows = await unit.write<{ turn_id: number; kept: boolean; busy: boolean | null }>(
    APPEND,
    chunks,
    node,
  );
  const held = rows.find(({ busy }) => busy);
  if (held) throw new Conflict(`turns:${held.turn_id}`);
  const first = chunks.filter((chunk) => chunk.first);
  if (first.length > 0) {
    await unit.write(
      `UPDATE turns SET first_token_at = $3
       WHERE id = ANY($1::bigint[]) AND node = $2 AND first_token_at IS NULL`,
      list(first.map((chunk) => chunk.turn_id)),
      node,
      (first[0] as NewChunk).at,
    );
  }
  return rows.filter(({ kept }) => !kept).map(({ turn_id }) => turn_id);
}

async function finishTurn(unit: Unit, turn: TurnRecord, finished: FinishedTurn): Promise<number> {
  const { message_id, conversation_id } = turn;
  if (message_id === null) throw new Error(`turn ${turn.id} has no message`);
  const { status, content, mentions, error, usage, at } = finished;
  const version = await incrementCounter(unit, conversation_id);
  const [place] = await unit.write<{ seq: number; sender_id: number }>(
    FINALIZE_MESSAGE,
    message_id,
    content,
    toStoredMentions(unit, mentions),
    toShownTurn(turn, finished),
    at,
    version,
  );
  if (place) await addMentions(unit, mentions, { conversation_id, ...place });
  await Promise.all([
    unit.write("DELETE FROM chunks WHERE message_id = $1", message_id),
    unit.index({ id: message_id, conversation_id }, content),
    addUsage(unit, settledUsage(turn, finished)),
    unit.write(
      FINISH_TURN,
      turn.id,
      status,
      error,
      at,
      usage?.input_tokens ?? null,
      usage?.output_tokens ?? null,
    ),
  ]);
  return version;
}
