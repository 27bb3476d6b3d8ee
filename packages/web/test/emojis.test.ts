import { describe, expect, test } from "bun:test";
import { allEmojis, findEmojis } from "../src/emoji/emojis.ts";

describe("emojis", () => {
  test("are each one that the service takes, with a name of its own", () => {
    const refused = allEmojis.filter(({ emoji }) => !/^\p{RGI_Emoji}$/v.test(emoji));
    expect(refused).toEqual([]);
    expect(new Set(allEmojis.map(({ emoji }) => emoji)).size).toBe(allEmojis.length);
    expect(new Set(allEmojis.map(({ name }) => name)).size).toBe(allEmojis.length);
    expect(allEmojis.every(({ name }) => name !== "")).toBe(true);
  });

  test("are found by their names first, then by other words", () => {
    const found = (query: string) => findEmojis(query).map(({ emoji }) => emoji);
    expect(found("rocket")).toEqual(["🚀"]);
    expect(found(" Party ")).toEqual(["🎉", "🥳"]);
    expect(found("yes").slice(0, 2)).toEqual(["🫡", "👍"]);
    expect(found("no such thing")).toEqual([]);
  });
});
