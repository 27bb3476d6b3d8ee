import { describe, expect, test } from "bun:test";
import { nameOf, shortenMiddle, splitTitle } from "../src/lib/names.ts";

const agent = (username: string, display_name: string) =>
  ({ username, kind: "agent", display_name, version: 0 }) as const;

describe("the short name", () => {
  test("of an agent leaves out its owner", () => {
    expect(nameOf(agent("ada:claude", "Ada Lovelace's Claude"))).toBe("Claude");
    expect(nameOf(agent("ada:gpt", "Ada's friend's GPT"))).toBe("GPT");
    expect(nameOf(agent("ada:my-llm", "Ada’s My LLM 2"))).toBe("My LLM 2");
  });

  test("of an agent is the one that its owner chose", () => {
    expect(nameOf(agent("ada:claude", "Scout"))).toBe("Scout");
    expect(nameOf(agent("ada:claude", "Today's News"))).toBe("Today's News");
  });

  test("of a person is the whole name", () => {
    const person = {
      username: "claude",
      kind: "human",
      display_name: "Ada's Claude",
      version: 0,
    } as const;
    expect(nameOf(person)).toBe("Ada's Claude");
  });
});

test("a long name is shortened in the middle", () => {
  const region = "Quarterly planning for the northern region";
  expect(shortenMiddle("Compiler design", 42)).toBe("Compiler design");
  expect(shortenMiddle(`${region}: design`, 42)).toBe("Quarterly planning … region: design");
  expect(shortenMiddle(`${region}: engineering`, 42)).toBe(
    "Quarterly planning … region: engineering",
  );
  expect(
    shortenMiddle("Project Zeppelin – all the plans for spring and the launch checklist", 42),
  ).toBe("Project Zeppelin – … the launch checklist");
  expect(shortenMiddle("x".repeat(100), 42).length).toBeLessThanOrEqual(42);
});

test("a long title is divided before its last word, or before the end of that", () => {
  expect(splitTitle("Compiler design")).toEqual({ start: "Compiler design", end: "" });
  expect(splitTitle("Planning for the region: design")).toEqual({
    start: "Planning for the region: ",
    end: "design",
  });
  expect(splitTitle("The internationalization")).toEqual({
    start: "The internationaliz",
    end: "ation",
  });
});
