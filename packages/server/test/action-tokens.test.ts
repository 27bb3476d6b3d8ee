import { describe, expect, test } from "bun:test";
import { type Block, parseMarkup } from "@parley/protocol/markup";
import { rounds } from "@parley/testkit/rounds.ts";
import fc from "fast-check";
import { type ActionFields, replyToAction } from "../src/rules/action-tokens.ts";

const reply = (action: string, fields: ActionFields = {}) =>
  replyToAction({ action, fields, by: "bob" });
const blocks = (action: string, fields: ActionFields = {}) =>
  parseMarkup(reply(action, fields) ?? "");

const cardOf = (title: string, text: string): Block[] => [
  { type: "card", title, children: [{ type: "markdown", text }] },
];
const order = (side: string, symbol: string, quantity: string) =>
  cardOf(
    `${side} order placed`,
    `- **Symbol:** ${symbol}\n- **Quantity:** ${quantity}\n- **Placed by:** @bob`,
  );
const alert = (symbol: string, condition: string, value: string) =>
  cardOf("Alert set", `- **Symbol:** ${symbol}\n- **${condition}:** ${value}\n- **Set by:** @bob`);

describe("recognized tokens", () => {
  const replies: [action: string, blocks: Block[]][] = [
    ["trade:buy:AAPL:10", order("Buy", "AAPL", "10")],
    ["trade:sell:BRK-B:0.5", order("Sell", "BRK-B", "0.5")],
    ["trade:buy:BTC/USD:1,000", order("Buy", "BTC/USD", "1,000")],
    ["alert:AAPL:gt:200", alert("AAPL", "Rises above", "200")],
    ["alert:EURUSD=X:lt:1.05", alert("EURUSD=X", "Falls below", "1.05")],
    [
      "modify:limit",
      [
        { type: "markdown", text: "@bob, what should the limit price be?" },
        {
          type: "form",
          id: "limit_price",
          children: [
            {
              type: "input",
              name: "limit_price",
              label: "Limit price",
              input_type: "number",
              required: true,
            },
          ],
        },
      ],
    ],
  ];
  for (const [action, expected] of replies) {
    test(`include ${action}`, () => expect(blocks(action)).toEqual(expected));
  }

  test("are matched by prefix, ignoring further parts", () => {
    for (const action of [
      "trade:buy:AAPL:10",
      "trade:sell:A:1",
      "alert:AAPL:gt:200",
      "modify:limit",
    ]) {
      for (const more of [":", ":extra", ":a:b:c"]) {
        expect(reply(action + more)).toBe(reply(action));
      }
    }
    for (const action of ["cancel:", "cancel:order:1", "dismiss:", "dismiss:card"]) {
      expect(reply(action)).toBeNull();
    }
  });
});

describe("form_submit", () => {
  test("lists the fields and names the person", () => {
    const fields = { limit_price: 10.5, note: "", gtc: true };
    expect(blocks("form_submit:limit_price", fields)).toEqual(
      cardOf(
        "Form submitted",
        "@bob submitted “limit_price”:\n\n- **limit_price:** 10.5\n- **note:** (empty)\n- **gtc:** true",
      ),
    );
  });

  test("shows fields by the labels of the form, and those without one by their names", () => {
    const labels = new Map([
      ["limit_price", "Limit *price*"],
      ["note", ""],
    ]);
    const fields = { limit_price: 10, note: "x" };
    const content = replyToAction({ action: "form_submit:f", fields, labels, by: "bob" });
    expect(content).toContain("- **Limit \\*price\\*:** 10\n- **note:** x");
  });

  test("may have no fields, and colons in its id", () => {
    const expected = cardOf("Form submitted", "@bob submitted “a:b”:\n\nIt has no fields.");
    expect(blocks("form_submit:a:b")).toEqual(expected);
  });

  test("accepts any JSON value", () => {
    const fields = {
      a: null,
      b: ["x", "y", 3, true],
      c: [],
      d: { e: [1, { f: "g" }] },
      h: [["i"]],
    };
    expect(reply("form_submit:f", fields)?.split("\n").slice(4, 9)).toEqual([
      "- **a:** (empty)",
      "- **b:** x, y, 3, true",
      "- **c:** (empty)",
      '- **d:** {"e":[1,{"f":"g"}]}',
      '- **h:** [["i"]]',
    ]);
  });

  test("shows values as readable text", () => {
    const value = '</card><button action="x">**Hi**</button>: a_b, 5 < 6 & 7';
    const safe = '\\</card>\\<button action="x">\\*\\*Hi\\*\\*\\</button>: a_b, 5 < 6 & 7';
    expect(blocks("form_submit:f", { a: value })).toEqual(
      cardOf("Form submitted", `@bob submitted “f”:\n\n- **a:** ${safe}`),
    );
  });

  test("shows several lines as a quotation", () => {
    const fields = { a: "one\n\n# two\n@alice: three" };
    expect(reply("form_submit:f", fields)?.split("\n").slice(4, 9)).toEqual([
      "- **a:**",
      "  > one",
      "  >",
      "  > \\# two",
      "  > @alice: three",
    ]);
  });

  test("shows long values whole if all of them fit into a message, otherwise their beginnings", () => {
    const long = { a: "x".repeat(10_000), b: "it`s 5* *".repeat(600) };
    const whole = reply("form_submit:f", long) ?? "";
    expect(whole).toContain(`- **a:** ${long.a}\n- **b:** `);
    expect(whole).not.toContain("…");
    const cut = reply("form_submit:f", { ...long, c: "y".repeat(20_000) }) ?? "";
    expect(cut).toContain(`- **a:** ${"x".repeat(499)}…\n`);
    expect(cut).toContain(`- **c:** ${"y".repeat(499)}…\n`);
  });

  test("says how many fields are left out", () => {
    const fields = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [n, "*".repeat(2000)]));
    const content = reply("form_submit:f", fields) ?? "";
    expect(content).toMatch(/\n- and \d+ more\n\n<\/card>$/);
    expect(Buffer.byteLength(content)).toBeLessThanOrEqual(32_768);
  });
});

describe("any other token is acknowledged", () => {
  const acknowledgements: [action: string, sentence: string][] = [
    ["refresh", "I received the action “refresh” from @bob."],
    ["cancel", "I received the action “cancel” from @bob."],
    ["modify:stop", "I received the action “modify:stop” from @bob."],
    ["TRADE:BUY:AAPL:1", "I received the action “TRADE:BUY:AAPL:1” from @bob."],
    ["trade:hold:AAPL:1", "I received the action “trade:hold:AAPL:1” from @bob."],
    ["trade:", "I received the action “trade:” from @bob."],
    ["trade:buy", "I received the action “trade:buy” from @bob."],
    ["alert:AAPL:eq:1", "I received the action “alert:AAPL:eq:1” from @bob."],
    ["alert:AAPL:constructor:1", "I received the action “alert:AAPL:constructor:1” from @bob."],
    ["*b* <card>", "I received the action “\\*b\\* \\<card>” from @bob."],
    ["", "I received an action without a name from @bob."],
    ["👍".repeat(5000), `I received the action “${"👍".repeat(79)}…” from @bob.`],
    [
      "trade:buy:AAPL",
      "I received the action “trade:buy:AAPL” from @bob. Its quantity is missing.",
    ],
    ["trade:buy::10", "I received the action “trade:buy::10” from @bob. Its symbol is missing."],
    [
      "trade:sell:A: ",
      "I received the action “trade:sell:A: ” from @bob. Its quantity is missing.",
    ],
    ["alert:AAPL", "I received the action “alert:AAPL” from @bob. Its condition is missing."],
    ["alert:AAPL:gt", "I received the action “alert:AAPL:gt” from @bob. Its value is missing."],
    ["form_submit:", "I received the action “form_submit:” from @bob. Its form id is missing."],
  ];
  for (const [action, sentence] of acknowledgements) {
    test(JSON.stringify(action.slice(0, 40)), () => expect(reply(action)).toBe(sentence));
  }
});

describe("for any input", () => {
  const tricky = fc.constantFrom(
    ...['<button action="x">X</button>', "</card>", "</form>", '<card title="t">', "```", "`"],
    ...["\n\n", "    ", '"', "*", "&lt;", ":", "buy", "AAPL", "10", "gt", "👍", "\ud800"],
  );
  const text = (maxLength: number) =>
    fc.oneof(
      fc.array(tricky, { maxLength: 12 }).map((parts) => parts.join("")),
      fc.string({ unit: "binary", maxLength }),
      fc.tuple(tricky, fc.nat(100)).map(([part, times]) => part.repeat(times)),
      fc.constantFrom("*".repeat(maxLength), "漢".repeat(maxLength)),
    );
  const prefix = fc.constantFrom(
    ...["", "trade:buy:", "trade:sell:AAPL:", "trade:", "alert:", "alert:AAPL:gt:", "alert:A:"],
    ...["modify:limit", "form_submit:", "form_submit:f", "cancel:", "dismiss:"],
  );
  const action = fc.tuple(prefix, text(10_000)).map((parts) => parts.join(""));
  const value = fc.oneof(text(2000), fc.jsonValue(), fc.array(text(100)));
  const fields = fc.dictionary(text(64), value, { maxKeys: 60 });

  test("the reply fits into a message and contains only its own elements", () => {
    fc.assert(
      fc.property(action, fields, (token, submitted) => {
        const content = reply(token, submitted);
        expect(content === null).toBe(/^(?:cancel|dismiss):/.test(token));
        if (content === null) return;
        expect(content.isWellFormed()).toBe(true);
        expect(Buffer.byteLength(content)).toBeLessThanOrEqual(32_768);
        expect(ownElements).toContain(elements(parseMarkup(content)));
      }),
      { numRuns: rounds({ few: 300, all: 1500 }) },
    );
  });
});

const ownElements = [
  "",
  "card Buy order placed()",
  "card Sell order placed()",
  "card Alert set()",
  "card Form submitted()",
  "form limit_price",
];

function elements(blocks: Block[]): string {
  const names = blocks.map((block) => {
    if (block.type === "card") return `card ${block.title}(${elements(block.children)})`;
    if (block.type === "form") return `form ${block.id}`;
    return block.type === "button" ? `button ${block.action}` : "";
  });
  return names.filter((name) => name !== "").join(" ");
}
