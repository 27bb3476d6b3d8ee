import { describe, expect, test } from "bun:test";
import { TurnError, type TurnFacts } from "@parley/protocol";
import { turnError, turnSentence } from "@parley/protocol/text/turn-sentences";
import type { z } from "zod";

const OWNER = { isOwner: true, hasRetry: true };
const OTHERS = { isOwner: false, hasRetry: false };

/** Every error of which a reason is all that there is to know, or less. */
const described = TurnError.options.flatMap(({ shape }): TurnFacts[] => {
  const code = shape.code.value;
  if (!("parameters" in shape)) return [{ code } as TurnFacts];
  const { reason } = shape.parameters.unwrap().shape as { reason?: z.ZodEnum };
  return (reason?.options ?? []).map(
    (each) => ({ code, parameters: { reason: each } }) as TurnFacts,
  );
});

const overLimit: TurnFacts = {
  code: "budget_exceeded",
  parameters: { limit: "operator_daily_tokens", changed_by: "operator", max: 10 },
};

describe("the error of a turn", () => {
  test.each(described)("has a sentence for %j", (facts) => {
    const error = turnError(facts);
    expect(error.message).toMatch(/^[A-Z].{15,}\.$/);
    expect(TurnError.parse(error)).toEqual(error);
    expect(turnSentence(error, OTHERS)).toBe(error.message);
  });

  test("addresses the owner of the agent", () => {
    const error = turnError(overLimit);
    expect(error.message).toEndWith(". Its owner can store an API key of their own.");
    expect(turnSentence(error, OWNER)).toEndWith(". You can store an API key of your own.");
  });

  test("does not advise what a button beside it does", () => {
    const error = turnError({ code: "timeout" });
    expect(error.message).toBe("The provider took too long to answer. Try again in a moment.");
    expect(turnSentence(error, OWNER)).toBe("The provider took too long to answer.");
  });

  test("keeps the sentence of an earlier version, of a later one and of a program", () => {
    const message = "This agent's budget of 10 tokens a day is used up. Its owner can raise it.";
    const earlier = { code: "budget_exceeded", message } as const;
    expect(TurnError.parse(earlier)).toEqual(earlier);
    expect(turnSentence(earlier, OWNER)).toBe(message);
    const own = { code: "agent_failed", message: "The dice are lost." } as const;
    expect(turnSentence(turnError(own), OWNER)).toBe(own.message);
    for (const later of [
      { code: "new_code", message, parameters: { reason: "restart" } },
      { code: "interrupted", message, parameters: { reason: "new_reason" } },
      { code: "budget_exceeded", message, parameters: { limit: "new_limit", max: 3 } },
    ]) {
      expect(turnSentence(later as unknown as TurnError, OWNER)).toBe(message);
    }
  });
});
