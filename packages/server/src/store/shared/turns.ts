import type { Turn } from "@parley/protocol";
import { EXTERNAL } from "../../rules/agents.ts";
import type { AccountRecord } from "../accounts.ts";
import type { FinishedTurn, NewTurn, TurnRecord, TurnRound } from "../turns.ts";
import { ACCOUNT, accountOf } from "./accounts.ts";

/** Selects `TurnRow`s: turns with their agent, conversation, trigger and message. */
export const TURN = `SELECT t.id AS turn_id, t.conversation_id, c.uuid AS conversation_uuid,
    g.uuid AS trigger_uuid, g.seq AS trigger_seq, g.sender_id AS trigger_sender_id,
    g.deleted_at IS NOT NULL AS trigger_deleted, t.open_ended, t.folded, t.refusal, t.status, t.node,
    t.message_id, m.uuid AS message_uuid, m.seq AS message_seq, t.model, t.error, t.context_ids, t.reserved,
    t.by_operator,
    t.estimated_input, t.tries, t.started_at, t.first_token_at, t.finished_at, t.input_tokens,
    t.output_tokens, p.uuid AS continues_uuid, p.seq AS continues_seq, t.rounds, ${ACCOUNT}
  FROM turns t
  JOIN accounts a ON a.id = t.agent_id
  JOIN conversations c ON c.id = t.conversation_id
  JOIN messages g ON g.id = t.trigger_id
  LEFT JOIN messages m ON m.id = t.message_id
  LEFT JOIN messages p ON p.id = t.continues_id`;

export const OPEN_TURNS = `${TURN} WHERE t.conversation_id = $1
  AND t.status IN ('waiting', 'running') ORDER BY t.id`;

/**
 * Gives the last waiting turn that is open-ended and has the same refusal the new trigger, if as many
 * turns wait as may. The parameters are those of `foldValues`.
 */
export const FOLD_TURN = `UPDATE turns SET folded = true,
    trigger_id = (SELECT id FROM messages WHERE uuid = $3)
  WHERE id = (SELECT max(id) FROM turns WHERE agent_id = $1 AND conversation_id = $2
      AND status = 'waiting' AND open_ended AND refusal IS NOT DISTINCT FROM $4)
    AND (SELECT count(*) FROM turns WHERE agent_id = $1 AND conversation_id = $2
      AND status = 'waiting') >= $5`;

export const foldValues = (turn: NewTurn) => [
  turn.agent_id,
  turn.conversation_id,
  turn.trigger_uuid,
  turn.refusal,
  turn.most_waiting,
];

export const INSERT_TURN = `INSERT INTO turns (agent_id, conversation_id, trigger_id, open_ended,
    refusal, status, created_at, continues_id)
  SELECT $1, $2, id, $4, $5, 'waiting', $6, (SELECT id FROM messages WHERE uuid = $7)
  FROM messages WHERE uuid = $3`;

/** The parameters of `INSERT_TURN`. */
export const turnValues = (turn: NewTurn) => [
  turn.agent_id,
  turn.conversation_id,
  turn.trigger_uuid,
  turn.open_ended,
  turn.refusal,
  turn.at,
  turn.continues_uuid ?? null,
];

/** A waiting turn that may be claimed. */
export interface TurnHead {
  id: number;
  conversation_id: number;
}

/** Selects `TurnHead`s: the first waiting turns where no turn of the agent runs. */
const HEADS = `SELECT min(t.id) AS id, t.conversation_id
  FROM turns t JOIN accounts a ON a.id = t.agent_id
  WHERE t.status = 'waiting' AND NOT EXISTS (SELECT 1 FROM turns r WHERE r.status = 'running'
    AND r.agent_id = t.agent_id AND r.conversation_id = t.conversation_id)`;

/** The turns that nodes claim. */
export const NEXT_TURNS = `${HEADS}
  AND (a.provider IS DISTINCT FROM '${EXTERNAL}' OR t.refusal IS NOT NULL)
  GROUP BY t.agent_id, t.conversation_id ORDER BY min(t.id) LIMIT $1`;

/** The turns that the program of an external agent, parameter 1, can claim. */
const CLAIMABLE = `${HEADS} AND t.agent_id = $1 AND t.refusal IS NULL GROUP BY t.conversation_id`;

export const CLAIMABLE_TURNS = `${CLAIMABLE} ORDER BY min(t.id) LIMIT $2`;

/** One of them: the one with the id of parameter 2, or without an id the oldest. */
export const NEXT_EXTERNAL_TURN = `SELECT h.id, h.conversation_id FROM (${CLAIMABLE}) h
  WHERE h.id = coalesce($2, h.id) ORDER BY h.id LIMIT 1`;

/** Turns that began earlier are not read to find out whether an agent had one until now. */
const LONG_TURN_MS = 3_600_000;

/**
 * The turns of external agents that have waited since `seen` and whose agents were not seen since, and
 * those that have waited since `claimed` and whose agents have had no turn since. `tries` is 0 for turns
 * that ended without a program. The limit is parameter 1.
 */
export const offlineTurns = ({ seen, claimed }: Record<"seen" | "claimed", string>) =>
  `${HEADS} AND a.provider = '${EXTERNAL}' AND t.refusal IS NULL AND (
    (t.created_at <= ${seen} AND NOT EXISTS (
      SELECT 1 FROM agent_presence p WHERE p.account_id = t.agent_id AND p.seen_at > ${seen}))
    OR (t.created_at <= ${claimed}
      AND NOT EXISTS (SELECT 1 FROM turns r WHERE r.agent_id = t.agent_id AND r.status = 'running')
      AND NOT EXISTS (SELECT 1 FROM turns e WHERE e.agent_id = t.agent_id AND e.tries > 0
        AND e.started_at > ${claimed} - ${LONG_TURN_MS} AND e.finished_at > ${claimed})))
  GROUP BY t.agent_id, t.conversation_id ORDER BY min(t.id) LIMIT $1`;

export const BEGIN_TURN = `UPDATE turns SET message_id = (SELECT id FROM messages WHERE uuid = $2),
  model = $3, started_at = $4 WHERE id = $1`;

export const RESERVE_TURN = `UPDATE turns SET reserved = $2, estimated_input = $3, context_ids = $4,
  by_operator = $5, input_tokens = NULL WHERE id = $1`;

export const SET_ATTEMPT = `UPDATE turns SET tries = $2, input_tokens = $3
  WHERE id = $1 AND status = 'running'`;

export const FINALIZE_MESSAGE = `UPDATE messages SET content = $2, mentions = $3, turn = $4,
  finalized_at = $5, version = $6 WHERE id = $1 RETURNING seq, sender_id`;

export const FINISH_TURN = `UPDATE turns SET status = $2, error = $3, finished_at = $4,
  input_tokens = $5, output_tokens = $6, reserved = 0, node = NULL, lease_until = NULL
  WHERE id = $1`;

type Flag = "trigger_deleted" | "open_ended" | "folded" | "by_operator";

export type TurnRow = AccountRecord &
  Omit<TurnRecord, "id" | "agent" | "usage" | "rounds" | "charged_input" | Flag> &
  Record<Flag, boolean | number> & {
    turn_id: number;
    input_tokens: number | null;
    output_tokens: number | null;
    rounds: readonly TurnRound[] | null;
  };

export function toTurn(row: TurnRow): TurnRecord {
  const { input_tokens, output_tokens } = row;
  return {
    id: row.turn_id,
    agent: accountOf(row),
    conversation_id: row.conversation_id,
    conversation_uuid: row.conversation_uuid,
    trigger_uuid: row.trigger_uuid,
    trigger_seq: row.trigger_seq,
    trigger_sender_id: row.trigger_sender_id,
    trigger_deleted: Boolean(row.trigger_deleted),
    continues_uuid: row.continues_uuid,
    continues_seq: row.continues_seq,
    open_ended: Boolean(row.open_ended),
    folded: Boolean(row.folded),
    refusal: row.refusal,
    status: row.status,
    node: row.node,
    message_id: row.message_id,
    message_uuid: row.message_uuid,
    message_seq: row.message_seq,
    model: row.model,
    error: row.error,
    context_ids: row.context_ids,
    reserved: row.reserved,
    by_operator: Boolean(row.by_operator),
    estimated_input: row.estimated_input,
    charged_input: input_tokens,
    tries: row.tries,
    started_at: row.started_at,
    first_token_at: row.first_token_at,
    finished_at: row.finished_at,
    rounds: row.rounds ?? [],
    usage: input_tokens === null || output_tokens === null ? null : { input_tokens, output_tokens },
  };
}

/** What the message of a finished turn shows of the turn. */
export const toShownTurn = (
  { trigger_uuid, continues_uuid, model }: TurnRecord,
  { status, error, usage }: FinishedTurn,
): Turn => ({
  status,
  triggered_by: trigger_uuid,
  model,
  error,
  usage,
  ...(continues_uuid !== null && { continues: continues_uuid }),
});
