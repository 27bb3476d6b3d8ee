import { describe, expect, test } from "bun:test";
import { type Block, parseMarkup } from "@parley/protocol/markup";
import fc from "fast-check";
import { type ActionFields, replyToAction } from "../src/rules/action-tokens.ts";

const cardOf = (title: string, text: string): Block[] => [
  { type: "card", title, children: [{ type: "markdown", text }] },
];

describe("recognized tokens", () => {
  const replies: [action: string, blocks: Block[]][] = [
    ["trade:buy:AAPL:10", cardOf("Buy order placed", "- **Symbol:** AAPL\n- **Quantity:** 10")],
    [
      "trade:sell:BRK-B:0.5",
      cardOf("Sell order placed", "- **Symbol:** BRK-B\n- **Quantity:** 0.5"),
    ],
    ["alert:AAPL:gt:200", cardOf("Alert set", "Alert when **AAPL** rises above 200.")],
    [
      "alert:EURUSD=X:lt:1.05",
      cardOf("Alert set", "Alert when **EURUSD&#61;X** falls below 1.05."),
    ],
    [
      "modify:limit",
      [
        { type: "markdown", text: "What should the limit price be?" },
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
  for (const [action, blocks] of replies) {
    test(action, () => expect(parseMarkup(replyToAction(action, {}) ?? "")).toEqual(blocks));
  }

  test("prefixes match whatever follows", () => {
    expect(replyToAction("modify:limit:AAPL", {})).toBe(replyToAction("modify:limit", {}));
    for (const action of ["cancel:", "cancel:order:1", "dismiss:", "dismiss:card"]) {
      expect(replyToAction(action, {})).toBeNull();
    }
  });
});

describe("form_submit", () => {
  const reply = (action: string, fields: ActionFields) =>
    parseMarkup(replyToAction(action, fields) ?? "");

  test("lists the fields", () => {
    expect(reply("form_submit:limit_price", { limit_price: 10.5, note: "", gtc: true })).toEqual(
      cardOf(
        "Form submitted",
        "Form “limit_price”\n\n- **limit_price:** 10.5\n- **note:** (empty)\n- **gtc:** true",
      ),
    );
  });

  test("without fields", () => {
    const expected = cardOf("Form submitted", "Form “a&#58;b”\n\nIt has no fields.");
    expect(reply("form_submit:a:b", {})).toEqual(expected);
  });

  test("values are text", () => {
    const value = '</card><button action="x">**Hi**</button>\n\n# there';
    const safe =
      "&lt;/card&gt;&lt;button action&#61;&quot;x&quot;&gt;&#42;&#42;Hi&#42;&#42;" +
      "&lt;/button&gt;&#10;&#10;&#35; there";
    expect(reply("form_submit:f", { a: value })).toEqual(
      cardOf("Form submitted", `Form “f”\n\n- **a:** ${safe}`),
    );
  });

  test("says how many fields it leaves off", () => {
    const fields = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [n, "*".repeat(2000)]));
    const content = replyToAction("form_submit:f", fields) ?? "";
    expect(content).toMatch(/\n- and \d+ more\n\n<\/card>$/);
    expect(Buffer.byteLength(content)).toBeLessThanOrEqual(32_768);
  });
});

describe("malformed parts are explained", () => {
  const explanations: [action: string, sentence: string][] = [
    ["trade:buy:AAPL", "I could not place the buy order: the quantity is missing."],
    [
      "trade:buy:AAPL:-3",
      "I could not place the buy order: the quantity “&#45;3” is not a positive number.",
    ],
    [
      "trade:sell:AAPL:0",
      "I could not place the sell order: the quantity “0” is not a positive number.",
    ],
    [
      "trade:buy:AAPL:10:20",
      "I could not place the buy order: the quantity “10:20” is not a positive number.",
    ],
    [
      "trade:buy:AAPL:1e999",
      "I could not place the buy order: the quantity “1e999” is not a positive number.",
    ],
    ["trade:buy::10", "I could not place the buy order: the symbol is missing."],
    ["trade:buy:A B:10", "I could not place the buy order: “A B” is not a symbol."],
    ["trade:hold:AAPL:10", "I could not place the order: “hold” is neither buy nor sell."],
    ["trade:", "I could not place the order: it does not say whether to buy or to sell."],
    ["trade:sell", "I could not place the order: the symbol and the quantity are missing."],
    [
      "alert:AAPL:eq:1",
      "I could not set the alert: the condition “eq” is neither gt (above) nor lt (below).",
    ],
    [
      "alert:AAPL",
      "I could not set the alert: the condition is missing; it is gt (above) or lt (below).",
    ],
    ["alert:AAPL:gt", "I could not set the alert: the value is missing."],
    ["alert:AAPL:gt:high", "I could not set the alert: the value “high” is not a number."],
    ["alert:AAPL:gt:Infinity", "I could not set the alert: the value “Infinity” is not a number."],
    ["alert:", "I could not set the alert: the symbol is missing."],
    ["form_submit:", "I could not take the form: its id is missing."],
  ];
  for (const [action, sentence] of explanations) {
    test(action, () => expect(replyToAction(action, {})).toBe(sentence));
  }
});

describe("any other token is acknowledged", () => {
  const acknowledgements: [action: string, sentence: string][] = [
    ["refresh", "I received the action “refresh”."],
    ["cancel", "I received the action “cancel”."],
    ["modify:stop", "I received the action “modify&#58;stop”."],
    ["TRADE:BUY:AAPL:1", "I received the action “TRADE&#58;BUY&#58;AAPL&#58;1”."],
    ["*b* <card>", "I received the action “&#42;b&#42; &lt;card&gt;”."],
    ["", "I received an action without a name."],
    ["👍".repeat(5000), `I received the action “${"👍".repeat(79)}…”.`],
  ];
  for (const [action, sentence] of acknowledgements) {
    test(JSON.stringify(action.slice(0, 40)), () => {
      expect(replyToAction(action, {})).toBe(sentence);
    });
  }
});

describe("whatever is submitted", () => {
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
  const value = fc.oneof(text(2000), fc.double(), fc.boolean());
  const fields = fc.dictionary(text(64), value, { maxKeys: 60 });

  test("the reply fits a message and has no element but its own", () => {
    fc.assert(
      fc.property(action, fields, (token, submitted) => {
        const content = replyToAction(token, submitted);
        expect(content === null).toBe(/^(?:cancel|dismiss):/.test(token));
        if (content === null) return;
        expect(content.isWellFormed()).toBe(true);
        expect(Buffer.byteLength(content)).toBeLessThanOrEqual(32_768);
        expect(ownElements).toContain(elements(parseMarkup(content)));
      }),
      { numRuns: 1500 },
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
