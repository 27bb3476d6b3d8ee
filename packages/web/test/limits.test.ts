import { expect, test } from "bun:test";
import { allowance, type BudgetLimits } from "../../server/src/rules/budget.ts";
import { exceededLimit } from "../src/agents/limits.ts";

const NO_LIMITS: BudgetLimits = {
  turns_per_minute: null,
  daily_tokens: null,
  chat_daily_tokens: null,
  operator_daily_tokens: null,
};
const NOTHING_SPENT = { turnsInMinute: 0, today: 0, todayHere: 0, byOperator: 0 };

test.each(["turns_per_minute", "daily_tokens", "chat_daily_tokens"] as const)(
  "a turn that %s refuses leads to this limit, whatever is too large",
  (field) => {
    for (const limit of [0, 1000]) {
      for (const file_tokens of [0, 4900]) {
        const request = { input_tokens: 5000, file_tokens, max_output_tokens: 1000 };
        const spent = { ...NOTHING_SPENT, turnsInMinute: 1000 };
        const allowed = allowance({ ...NO_LIMITS, [field]: limit }, spent, request);
        expect("refusal" in allowed && exceededLimit(allowed.refusal)).toBe(field);
      }
    }
  },
);
