import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { searchParts, searchWords, snippet, spaced } from "../src/rules/search.ts";

describe("the words of a query", () => {
  const table: Record<string, [query: string, words: string[]]> = {
    "words are lowercase": ["Hello WORLD", ["hello", "world"]],
    "punctuation and syntax stand between words": [
      '"foo" AND (bar* OR -baz) NEAR:qux ^a+b{c}',
      ["foo", "and", "bar", "or", "baz", "near", "qux", "a", "b", "c"],
    ],
    "other alphabets are words": ["Größe привет 東京", ["größe", "привет", "東京"]],
    "digits are words": ["room 101", ["room", "101"]],
    "combining marks belong to their word": ["cafe\u0301 au", ["cafe\u0301", "au"]],
    "a query without letters or digits has no words": ["!? *** 👍 \u0301", []],
    "an empty query has no words": ["", []],
  };
  for (const [name, [query, words]] of Object.entries(table)) {
    test(name, () => expect(searchWords(query)).toEqual(words));
  }

  test("a query of any length has sixteen words at most", () => {
    expect(searchWords("w ".repeat(100))).toHaveLength(16);
  });
});

describe("scripts without spaces", () => {
  test("are indexed as pairs of neighbours, and the last letter", () => {
    expect(spaced("今日は東京").trim()).toBe("今日 日は は東 東京 京");
    expect(spaced("an iPhoneを買う、2台").replace(/ +/g, " ")).toBe(
      "an iPhone を買 買う う 、2 台 ",
    );
    expect(spaced("plain text, привет, 안녕")).toBe("plain text, привет, 안녕");
  });

  test("are looked for as the pairs of a word, or as the beginning of one", () => {
    expect(searchParts("東京都")).toEqual({ parts: ["東京", "京都"], open: false });
    expect(searchParts("京")).toEqual({ parts: ["京"], open: true });
    expect(searchParts("iphoneを買う")).toEqual({ parts: ["iphone", "を買", "買う"], open: false });
    expect(searchParts("café")).toEqual({ parts: ["café"], open: false });
  });

  test("are shown with what was found marked, and nothing else", () => {
    expect(snippet("今日は東京で会議があります", ["東京"])).toBe("今日は**東京**で会議があります");
    expect(snippet(`${"前".repeat(300)}東京${"後".repeat(300)}`, ["東京"])).toContain("**東京**");
  });
});

describe("the excerpt", () => {
  test("a short text is shown whole, with every match between asterisks", () => {
    expect(snippet("Lunch at noon? Lunch!", ["lunch"])).toBe("**Lunch** at noon? **Lunch**!");
  });

  test("white space of every kind becomes one space", () => {
    expect(snippet("  a\n\n b\t\tneedle  ", ["needle"])).toBe("a b **needle**");
  });

  test("the whole word is marked when its beginning matched", () => {
    expect(snippet("needles and a needle", ["need"])).toBe("**needles** and a **needle**");
  });

  test("the middle of a word is no match", () => {
    expect(snippet("kneed the need", ["need"])).toBe("kneed the **need**");
  });

  test("several words are each marked", () => {
    expect(snippet("red green blue", ["blue", "red"])).toBe("**red** green **blue**");
  });

  test("a long text is cut around the first match, and the cuts are shown", () => {
    const filler = "lorem ipsum dolor sit amet ".repeat(20);
    const shown = snippet(`${filler}needle ${filler}`, ["needle"]);
    expect(shown).toStartWith("…");
    expect(shown).toEndWith("…");
    expect(shown).toContain("**needle**");
    expect(shown.length).toBeLessThan(260);
  });

  test("a match that the store found by ignoring accents is marked too", () => {
    const filler = "lorem ipsum dolor sit amet ".repeat(20);
    expect(snippet(`${filler}Café ${filler}`, ["cafe"])).toContain("**Café**");
    expect(snippet(`${filler}cafe ${filler}`, ["café"])).toContain("**cafe**");
    expect(snippet(`${filler}cafe\u0301 ${filler}`, ["caf\u00e9"])).toContain("**cafe\u0301**");
  });

  test("a text without a match is shown from its beginning", () => {
    expect(snippet("nothing here", ["needle"])).toBe("nothing here");
  });
});

describe("whatever is searched and found", () => {
  const anything = fc.string({ unit: "grapheme", maxLength: 600 });
  const wild = fc.string({ unit: "binary", maxLength: 600 });
  const words = fc
    .oneof(anything, wild)
    .map(searchWords)
    .filter((found) => found.length > 0);

  test("an excerpt is always made, and never breaks a character in two", () => {
    fc.assert(
      fc.property(fc.oneof(anything, wild), words, (content, found) => {
        fc.pre(content.isWellFormed());
        expect(snippet(content, found).isWellFormed()).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test("long runs of characters outside the basic plane are cut between them", () => {
    fc.assert(
      fc.property(fc.nat(200), fc.nat(200), fc.boolean(), (before, after, odd) => {
        const text = `${odd ? "a" : ""}${"👍".repeat(before)} needle ${"👍".repeat(after)}`;
        const shown = snippet(text, ["needle"]);
        expect(shown.isWellFormed()).toBe(true);
        expect(shown).toContain("**needle**");
      }),
    );
  });

  test("the excerpt contains the match, wherever in the text it stands", () => {
    const filler = fc.array(fc.constantFrom("lorem", "ipsum", "ä", "東京", "👍👍", "a-b", "\n"), {
      maxLength: 80,
    });
    const needle = fc.constantFrom("needle", "Nadel", "иголка", "針", "x1");
    fc.assert(
      fc.property(filler, needle, filler, (before, word, after) => {
        const content = [...before, word, ...after].join(" ");
        expect(snippet(content, searchWords(word))).toContain(`**${word}**`);
      }),
    );
  });

  test("without its marks the excerpt is a piece of the text", () => {
    fc.assert(
      fc.property(anything, words, (content, found) => {
        fc.pre(!/[*…]/.test(content));
        const piece = snippet(content, found).replace(/^…|…$/g, "").replaceAll("**", "");
        expect(content.replace(/\s+/g, " ")).toContain(piece);
      }),
    );
  });

  test("an excerpt stays short, however long the text and its words are", () => {
    fc.assert(
      fc.property(fc.nat(5000), fc.nat(5000), (before, length) => {
        const content = `${"x ".repeat(before)}needle${"s".repeat(length)} ${"y ".repeat(200)}`;
        expect(snippet(content, ["needle"]).length).toBeLessThan(300);
      }),
    );
  });
});
