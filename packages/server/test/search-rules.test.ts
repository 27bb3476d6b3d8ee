import { describe, expect, spyOn, test } from "bun:test";
import fc from "fast-check";
import { searchParts, searchWords, snippet, spaced } from "../src/rules/search.ts";
import { searchVector } from "../src/store/postgres/search.ts";

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

  test("a query has at most sixteen words", () => {
    expect(searchWords("w ".repeat(100))).toHaveLength(16);
  });
});

describe("scripts without spaces", () => {
  test("are indexed as bigrams and the last letter", () => {
    expect(spaced("今日は東京").trim()).toBe("今日 日は は東 東京 京");
    expect(spaced("an iPhoneを買う、2台").replace(/ +/g, " ")).toBe(
      "an iPhone を買 買う う 、2 台 ",
    );
    expect(spaced("plain text, привет, 안녕")).toBe("plain text, привет, 안녕");
  });

  test("are searched as bigrams, or as the beginning of one", () => {
    expect(searchParts("東京都")).toEqual({ parts: ["東京", "京都"], open: false });
    expect(searchParts("京")).toEqual({ parts: ["京"], open: true });
    expect(searchParts("iphoneを買う")).toEqual({ parts: ["iphone", "を買", "買う"], open: false });
    expect(searchParts("東京2024年")).toEqual({ parts: ["東京", "京", "2024", "年"], open: true });
    expect(searchParts("café")).toEqual({ parts: ["café"], open: false });
  });

  test("have only the match marked in a snippet", () => {
    expect(snippet("今日は東京で会議があります", ["東京"])).toBe("今日は**東京**で会議があります");
    expect(snippet(`${"前".repeat(300)}東京${"後".repeat(300)}`, ["東京"])).toContain("**東京**");
  });
});

describe("a snippet", () => {
  test("contains a short text in full, with every match between asterisks", () => {
    expect(snippet("Lunch at noon? Lunch!", ["lunch"])).toBe("**Lunch** at noon? **Lunch**!");
  });

  test("collapses white space", () => {
    expect(snippet("  a\n\n b\t\tneedle  ", ["needle"])).toBe("a b **needle**");
  });

  test("marks a whole word if its beginning matches", () => {
    expect(snippet("needles and a needle", ["need"])).toBe("**needles** and a **needle**");
  });

  test("does not mark a match in the middle of a word", () => {
    expect(snippet("kneed the need", ["need"])).toBe("kneed the **need**");
  });

  test("marks all words", () => {
    expect(snippet("red green blue", ["blue", "red"])).toBe("**red** green **blue**");
  });

  test("shows a long text around the first match, with ellipses", () => {
    const filler = "lorem ipsum dolor sit amet ".repeat(20);
    const shown = snippet(`${filler}needle ${filler}`, ["needle"]);
    expect(shown).toStartWith("…");
    expect(shown).toEndWith("…");
    expect(shown).toContain("**needle**");
    expect(shown.length).toBeLessThan(260);
  });

  test("marks matches regardless of accents", () => {
    const filler = "lorem ipsum dolor sit amet ".repeat(20);
    expect(snippet(`${filler}Café ${filler}`, ["cafe"])).toContain("**Café**");
    expect(snippet(`${filler}cafe ${filler}`, ["café"])).toContain("**cafe**");
    expect(snippet(`${filler}cafe\u0301 ${filler}`, ["caf\u00e9"])).toContain("**cafe\u0301**");
  });

  test("shows the beginning of a text without a match", () => {
    expect(snippet("nothing here", ["needle"])).toBe("nothing here");
  });
});

test("a long text is folded in pieces, not word by word for each word of the query", () => {
  using normalize = spyOn(String.prototype, "normalize");
  const content = `${"é ".repeat(10_000)}needle`;
  expect(snippet(content, searchWords("needle 1 2 3 4 5 6 7 8 9"))).toEndWith("**needle**");
  expect(normalize.mock.calls.length).toBeLessThan(1000);
});

test("marks that follow each other are ignored, however many there are", () => {
  const marks = "\u0316\u0301".repeat(100_000);
  expect(snippet(`e${marks} needle`, ["needle"])).toContain("needle**");
  expect(searchVector(1, `e${marks}`)).toBe("'#1' 'e'");
});

describe("for any text and query", () => {
  const anything = fc.string({ unit: "grapheme", maxLength: 600 });
  const wild = fc.string({ unit: "binary", maxLength: 600 });
  const words = fc
    .oneof(anything, wild)
    .map(searchWords)
    .filter((found) => found.length > 0);

  test("a snippet is well-formed", () => {
    fc.assert(
      fc.property(fc.oneof(anything, wild), words, (content, found) => {
        fc.pre(content.isWellFormed());
        expect(snippet(content, found).isWellFormed()).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test("a snippet splits no surrogate pair in a long run of them", () => {
    fc.assert(
      fc.property(fc.nat(200), fc.nat(200), fc.boolean(), (before, after, odd) => {
        const text = `${odd ? "a" : ""}${"👍".repeat(before)} needle ${"👍".repeat(after)}`;
        const shown = snippet(text, ["needle"]);
        expect(shown.isWellFormed()).toBe(true);
        expect(shown).toContain("**needle**");
      }),
    );
  });

  test("a snippet contains the match at any position of the text", () => {
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

  test("a snippet without its marks is a part of the text", () => {
    fc.assert(
      fc.property(anything, words, (content, found) => {
        fc.pre(!/[*…]/.test(content));
        const piece = snippet(content, found).replace(/^…|…$/g, "").replaceAll("**", "");
        expect(content.replace(/\s+/g, " ")).toContain(piece);
      }),
    );
  });

  test("a snippet is short for texts and words of any length", () => {
    fc.assert(
      fc.property(fc.nat(5000), fc.nat(5000), (before, length) => {
        const content = `${"x ".repeat(before)}needle${"s".repeat(length)} ${"y ".repeat(200)}`;
        expect(snippet(content, ["needle"]).length).toBeLessThan(300);
      }),
    );
  });
});
