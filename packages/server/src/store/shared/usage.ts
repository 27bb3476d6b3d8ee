import { dayOf } from "../../rules/time.ts";
import type { FinishedTurn, Reservation, TurnRecord } from "../turns.ts";
import type { Spending } from "../usage.ts";

/** The time over which the turns of an agent are limited. */
export const TURN_WINDOW_MS = 60_000;

/** Selects the `SpentRow`s of an agent on a day. */
export const SPENT = `SELECT conversation_id, input_tokens + output_tokens + reserved AS used
  FROM agent_usage WHERE agent_id = $1 AND day = $2`;

/** Counts the turns of an agent since a time. Those without an estimate have not called the provider. */
export const TURNS_SINCE = `SELECT count(*) AS count FROM turns
  WHERE agent_id = $1 AND started_at > $2 AND estimated_input > 0`;

export const OPERATOR_SPENT = `SELECT CAST(coalesce(sum(u.operator_tokens), 0) AS bigint) AS used
  FROM accounts a JOIN agent_usage u ON u.agent_id = a.id AND u.day = $3
  WHERE a.owner_id = $1 AND (a.provider = $2 OR a.provider_day = $3)`;

export const USAGE = `SELECT a.username AS agent, c.uuid AS conversation_id, u.day, u.turns,
    u.failures, u.input_tokens, u.output_tokens
  FROM accounts a JOIN agent_usage u ON u.agent_id = a.id
  JOIN conversations c ON c.id = u.conversation_id
  WHERE a.owner_id = $1 AND u.day >= coalesce($2, u.day) AND u.day <= coalesce($3, u.day)
    AND u.turns > 0
  ORDER BY u.day, a.username, c.id`;

/** Tokens that an agent has used or reserved in a conversation on one day. */
export interface SpentRow {
  conversation_id: number;
  used: number;
}

/** `rows` are of one day. */
export const toSpending = (
  rows: readonly SpentRow[],
  conversationId: number,
  turnsInMinute: number,
): Spending => ({
  today: rows.reduce((sum, { used }) => sum + used, 0),
  todayHere: rows.find((row) => row.conversation_id === conversationId)?.used ?? 0,
  turnsInMinute,
});

/** The days that a report covers, as stored. */
export const daysOf = (since: number | null, until: number | null) => ({
  first: since === null ? null : dayOf(since),
  last: until === null ? null : dayOf(until),
});

/** What is added to the stored usage of an agent in a conversation on the day its turn began. */
export interface UsageDelta {
  agent_id: number;
  day: string;
  conversation_id: number;
  turns: number;
  failures: number;
  input_tokens: number;
  output_tokens: number;
  reserved: number;
  /** Tokens used or reserved at the operator's expense. */
  operator_tokens: number;
}

export const ADD_USAGE = `INSERT INTO agent_usage (agent_id, day, conversation_id, turns, failures,
    input_tokens, output_tokens, reserved, operator_tokens)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
  ON CONFLICT (agent_id, day, conversation_id) DO UPDATE SET turns = agent_usage.turns + $4,
    failures = agent_usage.failures + $5, input_tokens = agent_usage.input_tokens + $6,
    output_tokens = agent_usage.output_tokens + $7, reserved = agent_usage.reserved + $8,
    operator_tokens = agent_usage.operator_tokens + $9`;

/** The parameters of `ADD_USAGE`. */
export const usageValues = (delta: UsageDelta) => [
  delta.agent_id,
  delta.day,
  delta.conversation_id,
  delta.turns,
  delta.failures,
  delta.input_tokens,
  delta.output_tokens,
  delta.reserved,
  delta.operator_tokens,
];

const reservedUsage = (turn: TurnRecord, tokens: number, operator_tokens: number): UsageDelta => ({
  agent_id: turn.agent.id,
  day: dayOf(turn.started_at ?? 0),
  conversation_id: turn.conversation_id,
  turns: 0,
  failures: 0,
  input_tokens: 0,
  output_tokens: 0,
  reserved: tokens,
  operator_tokens,
});

/** What a turn has reserved at the operator's expense. */
const operatorReserved = ({
  reserved,
  by_operator,
}: Pick<TurnRecord, "reserved" | "by_operator">): number => (by_operator ? reserved : 0);

/** What a turn has reserved in total from now on, and the difference to what it had. */
export function newReservation(turn: TurnRecord, reservation: Reservation) {
  const { spent_tokens, input_tokens, output_tokens, by_operator } = reservation;
  const reserved = spent_tokens + input_tokens + output_tokens;
  const byOperator = operatorReserved({ reserved, by_operator }) - operatorReserved(turn);
  return { reserved, usage: reservedUsage(turn, reserved - turn.reserved, byOperator) };
}

/** Frees what a turn has reserved. */
export const releasedUsage = (turn: TurnRecord): UsageDelta =>
  reservedUsage(turn, -turn.reserved, -operatorReserved(turn));

/** Replaces what a turn has reserved by what it has used. */
export function settledUsage(turn: TurnRecord, { status, usage }: FinishedTurn): UsageDelta {
  const { input_tokens, output_tokens } = usage ?? { input_tokens: 0, output_tokens: 0 };
  const released = releasedUsage(turn);
  const charged = turn.by_operator ? input_tokens + output_tokens : 0;
  return {
    ...released,
    turns: 1,
    failures: status === "failed" ? 1 : 0,
    input_tokens,
    output_tokens,
    operator_tokens: released.operator_tokens + charged,
  };
}
