import { describe, expect, test } from "bun:test";
import type { Account } from "@parley/protocol";
import { MAX_CONTENT_BYTES as CONTRACT_BYTES } from "@parley/protocol/operations/messages";
import {
  addressed,
  candidates,
  complete,
  mentionAt,
  unaddressed,
} from "../src/chat/composer/mention.ts";
import { charactersLeft, MAX_CONTENT_BYTES } from "../src/lib/content-limit.ts";
import { closeOpenMarks } from "../src/markdown/close-marks.ts";

describe("streaming text", () => {
  const cases: [streaming: string, closed: string][] = [
    ["plain words", "plain words"],
    ["some **bold", "some **bold**"],
    ["some **bold** and **more", "some **bold** and **more**"],
    ["a mark at the end **", "a mark at the end "],
    ["some `code", "some `code`"],
    ["`**` is code", "`**` is code"],
    ["~~gone", "~~gone~~"],
    ["see [the docs](https://exa", "see the docs"],
    ["see [the do", "see the do"],
    ["see [the docs](https://example.com) here", "see [the docs](https://example.com) here"],
    ["```ts\nconst a = `x", "```ts\nconst a = `x"],
    ["**done**\n\nnext **one", "**done**\n\nnext **one**"],
  ];
  test.each(cases)("%j is rendered as %j", (streaming, closed) => {
    expect(closeOpenMarks(streaming)).toBe(closed);
  });

  test("complete text is not changed", () => {
    const text = "# Title\n\n- *one*\n- `two`\n\n[link](https://example.com)\n";
    expect(closeOpenMarks(text)).toBe(text);
  });
});

describe("unfinished handles", () => {
  test.each([
    ["@", 1, { start: 0, query: "" }],
    ["hello @ad", 9, { start: 6, query: "ad" }],
    ["(@Ada:cl", 8, { start: 1, query: "ada:cl" }],
    ["hello @ad", 5, null],
    ["mail@example", 12, null],
    ["@ada hello", 10, null],
  ])("are found: in %j with the cursor at %d, the result is %j", (text, caret, found) => {
    expect(mentionAt(text, caret)).toEqual(found);
  });

  const account = (username: string, display_name: string): Account => ({
    username,
    display_name,
    kind: username.includes(":") ? "agent" : "human",
    version: 0,
  });
  const ada = account("ada", "Ada Lovelace");
  const grace = account("grace", "Grace Hopper");
  const claude = account("ada:claude", "Scout");

  test("match by username, name and provider, people first, without oneself", () => {
    const all = [claude, ada, grace];
    expect(candidates(all, "grace", "")).toEqual([ada, claude]);
    expect(candidates(all, "grace", "love")).toEqual([ada]);
    expect(candidates(all, "grace", "cl")).toEqual([claude]);
    expect(candidates(all, "grace", "gr")).toEqual([]);
  });

  test("are completed in place", () => {
    const text = "hello @ad, how are you?";
    const mention = { start: 6, query: "ad" };
    expect(complete(text, 9, mention, "ada")).toEqual({
      text: "hello @ada , how are you?",
      caret: 11,
    });
  });
});

describe("the length of a message", () => {
  test("has the limit of the contract", () => {
    expect(MAX_CONTENT_BYTES).toBe(CONTRACT_BYTES);
  });

  test("is told in characters near the limit", () => {
    expect(charactersLeft("")).toBeNull();
    expect(charactersLeft("a".repeat(30_000))).toBeNull();
    expect(charactersLeft("a".repeat(32_768))).toBe(0);
    expect(charactersLeft("é".repeat(16_000))).toBe(384);
    expect(charactersLeft("😀".repeat(8_193))).toBeLessThan(0);
  });
});

describe("a reply to an agent", () => {
  test("mentions it once, and not after the reply is cancelled", () => {
    expect(addressed("", "ada:gpt")).toBe("@ada:gpt ");
    expect(addressed("and now?", "ada:gpt")).toBe("@ada:gpt and now?");
    expect(addressed("so, @Ada:GPT?", "ada:gpt")).toBe("so, @Ada:GPT?");
    expect(addressed("`@ada:gpt`", "ada:gpt")).toBe("@ada:gpt `@ada:gpt`");
    expect(unaddressed("@ada:gpt and now?", "ada:gpt")).toBe("and now?");
    expect(unaddressed("and now?", "ada:gpt")).toBe("and now?");
  });
});
