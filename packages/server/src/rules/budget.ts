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
export const MIN_ANSWER_TOKENS = 64;

export type Allowance = { output_tokens: number } | { refusal: string };

/** What a turn would send to its provider, as estimated. */
export interface EstimatedRequest {
  readonly input_tokens: number;
  /** The part of `input_tokens` that is for the contents of files. */
  readonly file_tokens: number;
  readonly max_output_tokens: number;
}

/**
 * The longest answer that stays within every limit, or why the turn is refused. The web client tells
 * from the sentence which limit it is about: `agents/limits.ts`, `chat/TurnNote.tsx`.
 */
export function allowance(
  limits: BudgetLimits,
  spent: Spent,
  request: EstimatedRequest,
): Allowance {
  const { input_tokens, max_output_tokens } = request;
  if (limits.turns_per_minute !== null && spent.turnsInMinute >= limits.turns_per_minute) {
    return {
      refusal: `This agent may answer ${limits.turns_per_minute} times a minute. Try again in a minute.`,
    };
  }
  const budgets: Budget[] = [
    { limit: limits.daily_tokens, used: spent.today, scope: "", ...OWN },
    {
      limit: limits.chat_daily_tokens,
      used: spent.todayHere,
      scope: " in this conversation",
      ...OWN,
    },
    {
      limit: limits.operator_daily_tokens,
      used: spent.byOperator,
      scope: ", which this server pays for,",
      ...OPERATORS,
    },
  ];
  const minimum = Math.min(MIN_ANSWER_TOKENS, max_output_tokens);
  let output_tokens = max_output_tokens;
  for (const { limit, used, scope, usedUp, remedy } of budgets) {
    if (limit === null) continue;
    output_tokens = Math.min(output_tokens, limit - used - input_tokens);
    if (output_tokens < minimum) {
      const why = tooLarge(request, { limit, left: limit - used, minimum }) ?? usedUp;
      return { refusal: `This agent's budget of ${limit} tokens a day${scope} ${why}. ${remedy}` };
    }
  }
  return { output_tokens };
}

interface Budget {
  readonly limit: number | null;
  readonly used: number;
  readonly scope: string;
  readonly usedUp: string;
  /** What a person can do. */
  readonly remedy: string;
}

const OWN = { usedUp: "is used up", remedy: "Its owner can raise it." };
const OPERATORS = {
  usedUp: "is used up until midnight UTC",
  remedy: "Its owner can store an API key of their own.",
};

/** What of a request is too large for a budget; null if the budget is just used up. */
function tooLarge(
  { input_tokens, file_tokens }: EstimatedRequest,
  { limit, left, minimum }: { limit: number; left: number; minimum: number },
): string | null {
  if (file_tokens > 0 && input_tokens - file_tokens + minimum <= left) {
    return `is too small for the files in this conversation, which need about ${file_tokens}: ${left} are left`;
  }
  if (left >= minimum && input_tokens + minimum > limit) {
    return `is too small for this conversation, which needs about ${input_tokens}`;
  }
  return null;
}
