import type { AgentLimits } from "@parley/protocol";

/** The limits of an agent whose owner has set none. They suffice for people and stop runaway use. */
export const DEFAULT_LIMITS: AgentLimits = {
  spenders: "participants",
  daily_tokens: 2_000_000,
  chat_daily_tokens: null,
  turns_per_minute: 60,
  waiting_turns: 16,
};

export interface BudgetLimits {
  readonly daily_tokens: number | null;
  readonly chat_daily_tokens: number | null;
  readonly turns_per_minute: number | null;
  /** Of all of the owner's agents of the provider together, at the operator's expense. */
  readonly operator_daily_tokens: number | null;
}

/** What other turns have used or reserved. */
export interface Spent {
  readonly today: number;
  readonly todayHere: number;
  readonly turnsInMinute: number;
  /** At the operator's expense, by all of the owner's agents of the provider. */
  readonly byOperator: number;
}

/** A turn that could answer with fewer tokens is refused. */
const MIN_ANSWER_TOKENS = 64;

export type Grant = { output_tokens: number } | { refusal: string };

/** The longest answer that stays within every limit, or why the turn is refused. */
export function grant(
  limits: BudgetLimits,
  spent: Spent,
  input_tokens: number,
  max_output_tokens: number,
): Grant {
  if (limits.turns_per_minute !== null && spent.turnsInMinute >= limits.turns_per_minute) {
    return {
      refusal: `This agent may answer ${limits.turns_per_minute} times a minute. Try again in a minute.`,
    };
  }
  const usedUp = (limit: number | null, where = "") =>
    `This agent's budget of ${limit} tokens a day${where} is used up. Its owner can raise it.`;
  const budgets = [
    { limit: limits.daily_tokens, used: spent.today, refusal: usedUp },
    {
      limit: limits.chat_daily_tokens,
      used: spent.todayHere,
      refusal: (limit: number) => usedUp(limit, " in this conversation"),
    },
    { limit: limits.operator_daily_tokens, used: spent.byOperator, refusal: operatorRefusal },
  ];
  const minimum = Math.min(MIN_ANSWER_TOKENS, max_output_tokens);
  let output_tokens = max_output_tokens;
  for (const { limit, used, refusal } of budgets) {
    if (limit === null) continue;
    output_tokens = Math.min(output_tokens, limit - used - input_tokens);
    if (output_tokens < minimum) {
      return { refusal: refusal(limit) };
    }
  }
  return { output_tokens };
}

const operatorRefusal = (limit: number) =>
  `This agent's budget of ${limit} tokens a day, which this server pays for, is used up until midnight UTC. Its owner can store an API key of their own.`;
