import type { Turn, UsageRow } from "@parley/protocol";
import { dayOf } from "../rules/time.ts";
import type { Sql } from "./sql.ts";

/** The time over which the turns of an agent are limited. */
const TURN_WINDOW_MS = 60_000;

/** What agents have spent. A turn counts for the day (UTC) on which it began. */
export const usageReads = {
  /**
   * What an agent has spent or reserved. In a write unit, no other unit spends for the agent from
   * here until this one ends, on any node.
   */
  async spending(db: Sql, agentId: number, conversationId: number, now: number): Promise<Spending> {
    await db.ownRow("accounts", agentId);
    const [spent, recent] = await Promise.all([
      db.all<{ conversation_id: number; used: number }>`
        SELECT conversation_id, input_tokens + output_tokens + reserved AS used
        FROM agent_usage WHERE agent_id = ${agentId} AND day = ${dayOf(now)}`,
      // Turns without an estimate have not called the provider.
      db.firstNumber`
        SELECT count(*) AS count FROM turns
        WHERE agent_id = ${agentId} AND started_at > ${now - TURN_WINDOW_MS}
          AND estimated_input > 0`,
    ]);
    return {
      today: spent.reduce((sum, { used }) => sum + used, 0),
      todayHere: spent.find((row) => row.conversation_id === conversationId)?.used ?? 0,
      turnsInMinute: recent,
    };
  },
  /**
   * Tokens that all of an owner's agents of a provider have used or reserved today at the operator's
   * expense. In a write unit, no other unit spends for the owner at the operator's expense from here
   * until this one ends, on any node. Call it before `spending`.
   */
  async operatorSpending(db: Sql, ownerId: number, provider: string, now: number): Promise<number> {
    await db.ownRow("accounts", ownerId);
    const today = dayOf(now);
    return db.firstNumber`
      SELECT CAST(coalesce(sum(u.operator_tokens), 0) AS bigint) AS used
      FROM accounts a JOIN agent_usage u ON u.agent_id = a.id AND u.day = ${today}
      WHERE a.owner_id = ${ownerId} AND (a.provider = ${provider} OR a.provider_day = ${today})`;
  },
  /** Usage of an owner's agents by day, agent and conversation; both days are inclusive. */
  usage(db: Sql, ownerId: number, since: number | null, until: number | null) {
    const [first, last] = [since, until].map((time) => (time === null ? null : dayOf(time)));
    return db.all<UsageRow>`
      SELECT a.username AS agent, c.uuid AS conversation_id, u.day, u.turns, u.failures,
        u.input_tokens, u.output_tokens
      FROM accounts a JOIN agent_usage u ON u.agent_id = a.id
      JOIN conversations c ON c.id = u.conversation_id
      WHERE a.owner_id = ${ownerId} AND u.day >= coalesce(${first ?? null}, u.day)
        AND u.day <= coalesce(${last ?? null}, u.day) AND u.turns > 0
      ORDER BY u.day, a.username, c.id`;
  },
};

export interface Spending {
  /** Tokens used or reserved today, in all conversations. */
  today: number;
  /** Tokens used or reserved today in the conversation. */
  todayHere: number;
  /** Turns that called the provider in the last minute. */
  turnsInMinute: number;
}

/** A turn, as far as its spending needs it. */
interface SpendingTurn {
  readonly agent: { readonly id: number };
  readonly conversation_id: number;
  readonly started_at: number | null;
  readonly reserved: number;
  readonly by_operator: boolean;
}

export interface Reservation {
  /** What earlier rounds of the turn have used. */
  spent_tokens: number;
  input_tokens: number;
  output_tokens: number;
  context_ids: readonly string[];
  by_operator: boolean;
}

/** Reserves in place of what the turn has reserved before, and returns what it has reserved then. */
export async function reserveUsage(
  db: Sql,
  turn: SpendingTurn,
  { spent_tokens, input_tokens, output_tokens, by_operator }: Reservation,
): Promise<number> {
  const reserved = spent_tokens + input_tokens + output_tokens;
  await addUsage(db, turn, {
    reserved: reserved - turn.reserved,
    operator_tokens: (by_operator ? reserved : 0) - operatorReserved(turn),
  });
  return reserved;
}

/** Frees what a turn has reserved. */
export const releaseUsage = (db: Sql, turn: SpendingTurn) =>
  addUsage(db, turn, { reserved: -turn.reserved, operator_tokens: -operatorReserved(turn) });

/** Replaces what a turn has reserved by what it has used. */
export function settleUsage(
  db: Sql,
  turn: SpendingTurn,
  { status, usage }: { status: string; usage: Turn["usage"] },
): Promise<void> {
  const { input_tokens, output_tokens } = usage ?? { input_tokens: 0, output_tokens: 0 };
  const charged = turn.by_operator ? input_tokens + output_tokens : 0;
  return addUsage(db, turn, {
    turns: 1,
    failures: status === "failed" ? 1 : 0,
    input_tokens,
    output_tokens,
    reserved: -turn.reserved,
    operator_tokens: charged - operatorReserved(turn),
  });
}

/** What a turn has reserved at the operator's expense. */
const operatorReserved = ({ reserved, by_operator }: SpendingTurn): number =>
  by_operator ? reserved : 0;

type Count = "turns" | "failures" | "input_tokens" | "output_tokens";

/** `operator_tokens` are those used or reserved at the operator's expense. */
type UsageDelta = Partial<Record<Count, number>> & Record<"reserved" | "operator_tokens", number>;

/** Adds to the usage of an agent in a conversation on the day its turn began. */
async function addUsage(db: Sql, turn: SpendingTurn, delta: UsageDelta): Promise<void> {
  const place = { agent_id: turn.agent.id, conversation_id: turn.conversation_id };
  const sums = Object.keys(delta).map((name) => `${name} = agent_usage.${name} + excluded.${name}`);
  await db.insert(
    "agent_usage",
    { ...place, day: dayOf(turn.started_at ?? 0), ...delta },
    `ON CONFLICT (agent_id, day, conversation_id) DO UPDATE SET ${sums.join(", ")}`,
  );
}
