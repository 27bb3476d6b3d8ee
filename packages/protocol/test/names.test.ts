import { describe, expect, test } from "bun:test";
import { cleanName, deceptiveNames, isReservedName, operations } from "../src/index.ts";

describe("a name", () => {
  test.each([
    ["bidirectional controls", "Ada\u202egnp.exe\u202c", "Adagnp.exe"],
    ["isolates and marks", "\u2066Ada\u2069\u200f\u061c", "Ada"],
    ["zero-width characters", "A\u200bd\u200ca\u200d\u2060\ufeff", "Ada"],
    ["soft hyphens and tags", "A\u00adda\u{e0041}", "Ada"],
    ["fillers", "\u3164Ada\u115f\uffa0\u2800", "Ada"],
    ["separators of lines and paragraphs", "Ada\u2028 \u2029Lovelace", "Ada Lovelace"],
    ["variation selectors after a letter", "Ada\ufe0f", "Ada"],
  ])("loses %s", (_, given, stored) => {
    expect(cleanName(given)).toBe(stored);
  });

  test.each([
    ["emoji of several code points", "Ada 👩‍💻 ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 👍🏽 1️⃣"],
    ["a Persian name with a non-joiner", "علی‌رضا"],
    ["a Sinhala conjunct", "ක්‍රිස්ටි"],
    ["an ideograph's variant", "葛\u{e0100}城"],
  ])("keeps %s", (_, name) => {
    expect(cleanName(name)).toBe(name);
  });

  test("is normalized to NFC with single spaces", () => {
    expect(cleanName(" E\u0301mile \u3000 Zola\u00a0")).toBe("Émile Zola");
  });

  test("keeps at most thirty combining marks in a row, however many are given", () => {
    const marks = "\u0316\u0301";
    expect(cleanName(`a${marks.repeat(100_000)}b`)).toMatch(/^[^\p{M}]\p{M}{29,30}b$/u);
    expect(isReservedName(`a${marks.repeat(100_000)}`)).toBe(false);
  });

  test("of only invisible characters is refused as empty", () => {
    const { success } = operations.updateMe.input.safeParse({ display_name: "\u200b\u202e\u3164" });
    expect(success).toBe(false);
  });
});

describe("reserved names", () => {
  test.each(["admin", "Admin", " SYSTEM ", "ａｄｍｉｎ", "Parley", "everyone"])(
    "include %j",
    (name) => expect(isReservedName(name)).toBe(true),
  );

  test.each([
    ["a zero-width space", "sup\u200bport"],
    ["the name of deleted accounts", "Deleted account"],
    ["a team", "Support Team"],
    ["the service's own team", "Parley Admin-Team"],
    ["no spaces", "supportTeam"],
    ["spaces and punctuation", "S.u p-p_o·r t"],
    ["a Cyrillic letter", "\u0410dmin"],
    ["Greek letters", "su\u03c1\u03c1\u03bfrt"],
    ["accents", "Àdmín"],
    ["a deleted account in Cyrillic letters", "D\u0435l\u0435t\u0435d \u0430cc\u043eunt"],
  ])("include look-alikes with %s", (_, name) => expect(isReservedName(name)).toBe(true));

  test.each([
    ...["ada", "administrators_fan", "Ada Admin", "helpful", "Adminah", "Supporta", "Ali", "Al"],
    ...[
      "Анна",
      "Нина",
      "Тарас",
      "Ростислав",
      "Саша Петрова",
      "Άννα",
      "Ρωμαίος",
      "陈",
      "علی",
      "!!!",
    ],
    ...["admin1", "Account", "Team", "Deleted accountant", "The Parleys"],
  ])("do not include %j", (name) => expect(isReservedName(name)).toBe(false));
});

describe("ambiguous names", () => {
  const person = (username: string, display_name = username) => ({ username, display_name });

  test("look like another account's display name or username", () => {
    const people = [
      person("ada", "Ada Lovelace"),
      person("mallory", "Аda Lоvelace"),
      person("bob", "Bob"),
      person("eve", "b0b"),
      person("carol", "Carol"),
    ];
    expect([...deceptiveNames(people)].sort()).toEqual(["ada", "bob", "eve", "mallory"]);
  });

  test("look like a reserved name, in letters of any script", () => {
    expect([
      ...deceptiveNames([person("mallory", "Аdmіn"), person("eve", "S u p p o r t")]),
    ]).toEqual(["mallory", "eve"]);
  });

  test("do not include names that differ", () => {
    expect(deceptiveNames([person("ada", "Ada"), person("bob", "Bob")]).size).toBe(0);
  });
});
