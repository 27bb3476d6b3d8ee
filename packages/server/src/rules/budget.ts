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
}

/** What other turns have used or reserved. */
export interface Spent {
  readonly today: number;
  readonly todayHere: number;
  readonly turnsInMinute: number;
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
  const budgets = [
    { limit: limits.daily_tokens, used: spent.today, where: "" },
    { limit: limits.chat_daily_tokens, used: spent.todayHere, where: " in this conversation" },
  ];
  const minimum = Math.min(MIN_ANSWER_TOKENS, max_output_tokens);
  let output_tokens = max_output_tokens;
  for (const { limit, used, where } of budgets) {
    if (limit === null) continue;
    output_tokens = Math.min(output_tokens, limit - used - input_tokens);
    if (output_tokens < minimum) {
      return {
        refusal: `This agent's budget of ${limit} tokens a day${where} is used up. Its owner can raise it.`,
      };
    }
  }
  return { output_tokens };
}
