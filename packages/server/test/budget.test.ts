import { describe, expect, test } from "bun:test";
import { turnError } from "@parley/protocol/text/turn-sentences";
import { rounds } from "@parley/testkit/rounds.ts";
import fc from "fast-check";
import { type Allowance, allowance, type BudgetLimits, type Spent } from "../src/rules/budget.ts";

const unlimited: BudgetLimits = {
  daily_tokens: null,
  chat_daily_tokens: null,
  turns_per_minute: null,
  operator_daily_tokens: null,
};
const nothingSpent: Spent = { today: 0, todayHere: 0, turnsInMinute: 0, byOperator: 0 };

const at = Date.parse("2026-03-01T22:15:00.000Z");
const MIDNIGHT = "2026-03-02T00:00:00.000Z";

const request = (input_tokens: number, max_output_tokens: number, file_tokens = 0) => ({
  input_tokens,
  file_tokens,
  max_output_tokens,
  at,
});
const limited = (
  limits: Partial<BudgetLimits>,
  spent: Partial<Spent> = {},
  input = 100,
  files = 0,
) =>
  allowance(
    { ...unlimited, ...limits },
    { ...nothingSpent, ...spent },
    request(input, 1000, files),
  );

const refusalOf = (allowed: Allowance) => ("refusal" in allowed ? allowed.refusal : null);

const sentenceOf = (allowed: Allowance) => {
  const parameters = refusalOf(allowed);
  return parameters && turnError({ code: "budget_exceeded", parameters }).message;
};

describe("a grant", () => {
  test("is the full answer length without limits", () => {
    expect(limited({}, { today: 1e9, todayHere: 1e9, turnsInMinute: 1e9 })).toEqual({
      output_tokens: 1000,
    });
  });

  test("is the full answer length far below the limits", () => {
    expect(limited({ daily_tokens: 5000, chat_daily_tokens: 5000, turns_per_minute: 5 })).toEqual({
      output_tokens: 1000,
    });
  });

  test("is shorter near a limit: input and output together reach it exactly", () => {
    expect(limited({ daily_tokens: 1000 }, { today: 400 })).toEqual({ output_tokens: 500 });
  });

  test("follows the nearer of two limits", () => {
    const spent = { today: 400, todayHere: 300 };
    expect(limited({ daily_tokens: 1000, chat_daily_tokens: 600 }, spent)).toEqual({
      output_tokens: 200,
    });
  });

  test("is refused when fewer than 64 tokens are left for the answer", () => {
    expect(limited({ daily_tokens: 1000 }, { today: 1000 - 100 - 64 })).toEqual({
      output_tokens: 64,
    });
    expect(sentenceOf(limited({ daily_tokens: 1000 }, { today: 1000 - 100 - 63 }))).toBe(
      "This agent's budget of 1000 tokens a day is used up. Its owner can raise it.",
    );
  });

  test("is refused when the input alone exceeds the limit, and the sentence says so", () => {
    expect(sentenceOf(limited({ daily_tokens: 1000 }, {}, 5000))).toBe(
      "This agent's budget of 1000 tokens a day is too small for this conversation, which needs about 5000. Its owner can raise it.",
    );
  });

  test("is refused when only the files do not fit, and the sentence says so", () => {
    expect(sentenceOf(limited({ daily_tokens: 1000 }, { today: 300 }, 900, 800))).toBe(
      "This agent's budget of 1000 tokens a day is too small for the files in this conversation, which need about 800: 700 are left. Its owner can raise it.",
    );
    const paid = limited({ operator_daily_tokens: 1000 }, { byOperator: 300 }, 5000, 4900);
    expect(sentenceOf(paid)).toBe(
      "This agent's budget of 1000 tokens a day, which this server pays for, is too small for the files in this conversation, which need about 4900: 700 are left. Its owner can store an API key of their own.",
    );
    expect(sentenceOf(limited({ daily_tokens: 1000 }, { today: 950 }, 900, 800))).toBe(
      "This agent's budget of 1000 tokens a day is used up. Its owner can raise it.",
    );
  });

  test("is refused by the limit of the conversation while the daily limit has room", () => {
    const allowed = limited({ daily_tokens: 9000, chat_daily_tokens: 500 }, { todayHere: 450 });
    expect(sentenceOf(allowed)).toBe(
      "This agent's budget of 500 tokens a day in this conversation is used up. Its owner can raise it.",
    );
  });

  test("is refused to the first turn beyond the limit per minute, and not before", () => {
    expect(sentenceOf(limited({ turns_per_minute: 3 }, { turnsInMinute: 2 }))).toBeNull();
    expect(sentenceOf(limited({ turns_per_minute: 3 }, { turnsInMinute: 3 }))).toBe(
      "This agent may answer 3 times a minute. Try again in a minute.",
    );
  });

  test("is refused by a limit of zero", () => {
    for (const limit of ["daily_tokens", "chat_daily_tokens", "turns_per_minute"]) {
      expect(sentenceOf(limited({ [limit]: 0 }))).not.toBeNull();
    }
  });

  test("is refused when the operator's tokens are used up, and the sentence says what to do", () => {
    const refusal = sentenceOf(limited({ operator_daily_tokens: 1000 }, { byOperator: 950 }));
    expect(refusal).toContain("1000 tokens a day, which this server pays for");
    expect(refusal).toContain("Its owner can store an API key of their own.");
  });

  test("is refused with the limit, its value, who can change it and when it allows the turn", () => {
    expect(refusalOf(limited({ turns_per_minute: 3 }, { turnsInMinute: 3 }))).toEqual({
      limit: "turns_per_minute",
      max: 3,
      changed_by: "owner",
      retry_at: "2026-03-01T22:16:00.000Z",
    });
    expect(refusalOf(limited({ chat_daily_tokens: 500 }, { todayHere: 450 }))).toEqual({
      limit: "chat_daily_tokens",
      max: 500,
      changed_by: "owner",
      retry_at: MIDNIGHT,
    });
    expect(
      refusalOf(limited({ operator_daily_tokens: 1000 }, { byOperator: 300 }, 900, 800)),
    ).toEqual({
      limit: "operator_daily_tokens",
      max: 1000,
      changed_by: "operator",
      retry_at: MIDNIGHT,
      needs: { tokens: 800, of: "files", left: 700 },
    });
  });

  test("is refused without a time if the limit never allows the turn", () => {
    expect(refusalOf(limited({ turns_per_minute: 0 }))).toEqual({
      limit: "turns_per_minute",
      max: 0,
      changed_by: "owner",
    });
    expect(refusalOf(limited({ daily_tokens: 1000 }, {}, 5000))).toEqual({
      limit: "daily_tokens",
      max: 1000,
      changed_by: "owner",
      needs: { tokens: 5000, of: "conversation", left: 1000 },
    });
  });

  test("is not refused because the model's own answer limit is below 64 tokens", () => {
    expect(allowance({ ...unlimited, daily_tokens: 120 }, nothingSpent, request(100, 16))).toEqual({
      output_tokens: 16,
    });
  });
});

const amount = fc.oneof(fc.nat(300), fc.nat(100_000));
const limit = fc.option(amount, { nil: null });
const limits: fc.Arbitrary<BudgetLimits> = fc.record({
  daily_tokens: limit,
  chat_daily_tokens: limit,
  turns_per_minute: fc.option(fc.nat(20), { nil: null }),
  operator_daily_tokens: limit,
});

test("no grant exceeds a limit, and none is below the minimum", () => {
  const spent = fc.record({
    today: amount,
    todayHere: amount,
    turnsInMinute: fc.nat(30),
    byOperator: amount,
  });
  fc.assert(
    fc.property(
      limits,
      spent,
      amount,
      fc.integer({ min: 1, max: 8192 }),
      (limits, spent, input, max) => {
        const allowed = allowance(limits, spent, request(input, max));
        if ("refusal" in allowed) {
          expect(sentenceOf(allowed)).toMatch(/^This agent.*\.$/);
          return;
        }
        const total = input + allowed.output_tokens;
        expect(allowed.output_tokens).toBeWithin(Math.min(64, max), max + 1);
        expect(spent.today + total).toBeLessThanOrEqual(limits.daily_tokens ?? Infinity);
        expect(spent.todayHere + total).toBeLessThanOrEqual(limits.chat_daily_tokens ?? Infinity);
        const paid = limits.operator_daily_tokens ?? Infinity;
        expect(spent.byOperator + total).toBeLessThanOrEqual(paid);
        expect(spent.turnsInMinute).toBeLessThan(limits.turns_per_minute ?? Infinity);
      },
    ),
    { numRuns: rounds({ few: 200, all: 1000 }) },
  );
});

test("concurrent turns that reserve and settle in any order never exceed a limit", () => {
  const turn = fc.record({
    chat: fc.nat(2),
    input: fc.nat(500),
    /** The used share of the reserved tokens. */
    usedShare: fc.double({ min: 0, max: 1, noNaN: true }),
    /** How many turns start before this one settles. */
    duration: fc.nat(10),
  });
  fc.assert(
    fc.property(limits, fc.array(turn, { maxLength: 60 }), (limits, turns) => {
      const used = [0, 0, 0];
      const running: { chat: number; reserved: number; uses: number; until: number }[] = [];
      let allowed = 0;
      const at = (chat: number) =>
        (used[chat] as number) +
        running.filter((one) => one.chat === chat).reduce((sum, { reserved }) => sum + reserved, 0);
      for (const [index, { chat, input, usedShare, duration }] of turns.entries()) {
        for (const done of running.filter(({ until }) => until <= index)) {
          running.splice(running.indexOf(done), 1);
          used[done.chat] = (used[done.chat] as number) + done.uses;
        }
        const today = at(0) + at(1) + at(2);
        const spent = { today, todayHere: at(chat), turnsInMinute: allowed, byOperator: today };
        const outcome = allowance(limits, spent, request(input, 1000));
        if ("refusal" in outcome) continue;
        allowed++;
        const reserved = input + outcome.output_tokens;
        const uses = Math.floor(reserved * usedShare);
        running.push({ chat, reserved, uses, until: index + duration });
        expect(at(0) + at(1) + at(2)).toBeLessThanOrEqual(limits.daily_tokens ?? Infinity);
        expect(at(chat)).toBeLessThanOrEqual(limits.chat_daily_tokens ?? Infinity);
        expect(allowed).toBeLessThanOrEqual(limits.turns_per_minute ?? Infinity);
      }
    }),
    { numRuns: 300 },
  );
});
