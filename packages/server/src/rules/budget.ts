import type { AgentLimits } from "@parley/protocol";

/** The limits of an agent whose owner has set none: generous for people, finite for accidents. */
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

/** What other turns have used or reserved already. */
export interface Spent {
  readonly today: number;
  readonly todayHere: number;
  readonly turnsInMinute: number;
}

/** An answer shorter than this is not worth asking for. */
const SHORTEST_ANSWER = 64;

export type Grant = { output_tokens: number } | { refusal: string };

/** How long an answer may be so that no limit can be passed, or why there can be none. */
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
  const rooms = [
    { limit: limits.daily_tokens, used: spent.today, where: "" },
    { limit: limits.chat_daily_tokens, used: spent.todayHere, where: " in this conversation" },
  ];
  let output_tokens = max_output_tokens;
  for (const { limit, used, where } of rooms) {
    if (limit === null) continue;
    output_tokens = Math.min(output_tokens, limit - used - input_tokens);
    if (output_tokens < Math.min(SHORTEST_ANSWER, max_output_tokens)) {
      return {
        refusal: `This agent's budget of ${limit} tokens a day${where} is used up. Its owner can raise it.`,
      };
    }
  }
  return { output_tokens };
}
