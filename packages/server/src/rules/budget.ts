import type { AgentLimits, Turn, TurnParameters } from "@parley/protocol";
import { endOfDay, iso } from "./time.ts";

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

const MINUTE_MS = 60_000;

/** A turn that could answer with fewer tokens is refused. */
export const MIN_ANSWER_TOKENS = 64;

type Refusal = TurnParameters<"budget_exceeded">;

export type Allowance = { output_tokens: number } | { refusal: Refusal };

/** What a turn would send to its provider, as estimated. */
export interface EstimatedRequest {
  readonly input_tokens: number;
  /** The part of `input_tokens` that is for the contents of files. */
  readonly file_tokens: number;
  readonly max_output_tokens: number;
  /** When the turn began: what it uses counts for that day. */
  readonly at: number;
}

/** The longest answer that stays within every limit, or why the turn is refused. */
export function allowance(
  limits: BudgetLimits,
  spent: Spent,
  request: EstimatedRequest,
): Allowance {
  const { input_tokens, max_output_tokens, at } = request;
  const { turns_per_minute } = limits;
  if (turns_per_minute !== null && spent.turnsInMinute >= turns_per_minute) {
    const retry_at = turns_per_minute > 0 && iso(at + MINUTE_MS);
    return { refusal: refusal("turns_per_minute", turns_per_minute, retry_at) };
  }
  const budgets = [
    ["daily_tokens", spent.today],
    ["chat_daily_tokens", spent.todayHere],
    ["operator_daily_tokens", spent.byOperator],
  ] as const;
  const minimum = Math.min(MIN_ANSWER_TOKENS, max_output_tokens);
  let output_tokens = max_output_tokens;
  for (const [limit, used] of budgets) {
    const max = limits[limit];
    if (max === null) continue;
    output_tokens = Math.min(output_tokens, max - used - input_tokens);
    if (output_tokens < minimum) {
      const retry_at = input_tokens + minimum <= max && endOfDay(at);
      const needs = tooLarge(request, { max, left: max - used, minimum });
      return { refusal: { ...refusal(limit, max, retry_at), ...(needs && { needs }) } };
    }
  }
  return { output_tokens };
}

const refusal = (limit: keyof BudgetLimits, max: number, retry_at: string | false): Refusal => ({
  limit,
  max,
  changed_by: limit === "operator_daily_tokens" ? "operator" : "owner",
  ...(retry_at && { retry_at }),
});

/** What of a request is too large for a budget; null if the budget is just used up. */
function tooLarge(
  { input_tokens, file_tokens }: EstimatedRequest,
  { max, left, minimum }: { max: number; left: number; minimum: number },
): Refusal["needs"] | null {
  if (file_tokens > 0 && input_tokens - file_tokens + minimum <= left) {
    return { tokens: file_tokens, of: "files", left };
  }
  if (left >= minimum && input_tokens + minimum > max) {
    return { tokens: input_tokens, of: "conversation", left };
  }
  return null;
}

type Usage = NonNullable<Turn["usage"]>;

/** What calls of a model used together; null if nothing is known of one of them, or there are none. */
export function totalUsage(rounds: readonly { readonly usage: Turn["usage"] }[]): Turn["usage"] {
  const known = rounds.flatMap(({ usage }) => usage ?? []);
  if (known.length === 0 || known.length < rounds.length) return null;
  return known.reduce(addUsage);
}

export const addUsage = (one: Usage, other: Usage): Usage => ({
  input_tokens: one.input_tokens + other.input_tokens,
  output_tokens: one.output_tokens + other.output_tokens,
});

export const tokensOf = (usage: Turn["usage"]): number =>
  usage === null ? 0 : usage.input_tokens + usage.output_tokens;
