import { describe, expect, test } from "bun:test";
import { mistakable, shapeOf } from "../src/lib/lookalikes.ts";
import { bothEnds, nameOf } from "../src/lib/names.ts";

const agent = (username: string, display_name: string) =>
  ({ username, kind: "agent", display_name }) as const;

describe("the name of an agent", () => {
  test("is without its owner's, which stands beside it", () => {
    expect(nameOf(agent("ada:claude", "Ada Lovelace's Claude"))).toBe("Claude");
    expect(nameOf(agent("ada:gpt", "Ada's friend's GPT"))).toBe("GPT");
    expect(nameOf(agent("ada:my-llm", "Ada’s My LLM 2"))).toBe("My LLM 2");
  });

  test("is what its owner has chosen otherwise", () => {
    expect(nameOf(agent("ada:claude", "Scout"))).toBe("Scout");
    expect(nameOf(agent("ada:claude", "Today's News"))).toBe("Today's News");
  });

  test("people keep theirs", () => {
    const person = { username: "claude", kind: "human", display_name: "Ada's Claude" } as const;
    expect(nameOf(person)).toBe("Ada's Claude");
  });
});

test("a long name keeps both of its ends", () => {
  const region = "Quarterly planning for the northern region";
  expect(bothEnds("Compiler design", 42)).toBe("Compiler design");
  expect(bothEnds(`${region}: design`, 42)).toBe("Quarterly planning … region: design");
  expect(bothEnds(`${region}: engineering`, 42)).toBe("Quarterly planning … engineering");
  expect(bothEnds("x".repeat(100), 42).length).toBeLessThanOrEqual(42);
});

describe("names that can be mistaken for each other", () => {
  test("differ in case, accents, spaces, or in letters that look alike", () => {
    const shape = shapeOf("Bob Marchetti");
    for (const other of ["bob marchetti", "BobMarchetti", "Bób Marchettí", "Воb Маrсhеttі"]) {
      // The capital В of the last one is read as a Latin B.
      expect([other, shapeOf(other)]).toEqual([other, shape]);
    }
    expect(shapeOf("Bill")).toBe(shapeOf("BiII"));
    expect(shapeOf("Bob")).not.toBe(shapeOf("Rob"));
  });

  test("are found in a list, and others are not", () => {
    const named = (username: string, display_name: string) => ({ username, display_name });
    const list = [named("bob", "Bob"), named("b0b", "Воb"), named("rob", "Rob"), named("x", "Рау")];
    expect([...mistakable(list)].toSorted()).toEqual(["b0b", "bob"]);
  });
});
