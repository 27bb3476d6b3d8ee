import type { Turn } from "@parley/protocol";
import type { AccountRecord } from "../accounts.ts";
import type { FinishedTurn, TurnRecord, TurnRound } from "../turns.ts";
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

type Flag = "trigger_deleted" | "open_ended" | "folded" | "by_operator";

export type TurnRow = AccountRecord &
  Omit<TurnRecord, "id" | "agent" | "usage" | "rounds" | Flag> &
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
