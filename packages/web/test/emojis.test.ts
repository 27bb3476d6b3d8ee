import { describe, expect, test } from "bun:test";
import { emoji as Emoji } from "@parley/protocol/text/fields";
import { allEmojis, findEmojis } from "../src/emoji/emojis.ts";

describe("emojis", () => {
  test("are valid, and have unique names", () => {
    const refused = allEmojis.filter(({ emoji }) => Emoji.safeParse(emoji).data !== emoji);
    expect(refused).toEqual([]);
    expect(new Set(allEmojis.map(({ emoji }) => emoji)).size).toBe(allEmojis.length);
    expect(new Set(allEmojis.map(({ name }) => name)).size).toBe(allEmojis.length);
    expect(allEmojis.every(({ name }) => name !== "")).toBe(true);
  });

  test("are valid without their variation selectors too", () => {
    const bare = (emoji: string) => emoji.replaceAll("\ufe0f", "");
    const wrong = allEmojis.filter(({ emoji }) => Emoji.safeParse(bare(emoji)).data !== emoji);
    expect(wrong).toEqual([]);
    expect(allEmojis.some(({ emoji }) => bare(emoji) !== emoji)).toBe(true);
  });

  test("are found by name first, then by other words", () => {
    const found = (query: string) => findEmojis(query).map(({ emoji }) => emoji);
    expect(found("rocket")).toEqual(["🚀"]);
    expect(found(" Party ")).toEqual(["🎉", "🥳"]);
    expect(found("yes").slice(0, 2)).toEqual(["🫡", "👍"]);
    expect(found("no such thing")).toEqual([]);
  });
});
