import { describe, expect, test } from "bun:test";
import { rounds } from "@parley/testkit/rounds.ts";
import fc from "fast-check";
import {
  actionTokens,
  type Block,
  type ButtonBlock,
  componentOf,
  type FormBlock,
  inertName,
  inertText,
  parseMarkup,
  plainText,
  quotedText,
} from "../src/markup/index.ts";

const markdown = (text: string) => ({ type: "markdown" as const, text });
const button = (action: string, label: string): ButtonBlock => ({ type: "button", action, label });
const card = (title: string, ...children: Block[]): Block => ({ type: "card", title, children });
const form = (id: string, ...children: FormBlock["children"]): Block => ({
  type: "form",
  id,
  children,
});
const input = (name: string, rest: object = {}) =>
  ({ type: "input", name, label: name, input_type: "text", required: false, ...rest }) as const;
const select = (name: string, options: string[], rest: object = {}) =>
  ({ type: "select", name, label: name, required: false, options, ...rest }) as const;

const BUTTON = '<button action="a">A</button>';
const A = button("a", "A");

function examples(table: Record<string, [content: string, blocks: Block[]]>) {
  for (const [name, [content, blocks]] of Object.entries(table)) {
    test(name, () => expect(parseMarkup(content)).toEqual(blocks));
  }
}

describe("elements of markup", () => {
  examples({
    "nothing has no blocks": ["", []],
    "only white space has no blocks": [" \n\t\n", []],
    "plain Markdown is one block": ["# Hi\n\n- *there*", [markdown("# Hi\n\n- *there*")]],
    "a button may stand between words": [
      `Press ${BUTTON} now`,
      [markdown("Press"), button("a", "A"), markdown("now")],
    ],
    "a card may contain Markdown and a button": [
      `<card title="Order">\n**10** AAPL\n${BUTTON}\n</card>`,
      [card("Order", markdown("**10** AAPL"), A)],
    ],
    "a card may have no title": ["<card>x</card>", [card("", markdown("x"))]],
    "a form contains its fields": [
      '<form id="f">Say:<input name="n" label="Name" type="email" required>' +
        '<select name="s" label="Side" required><option>Buy</option><option>Sell</option></select>' +
        `${BUTTON}</form>`,
      [
        form(
          "f",
          markdown("Say:"),
          input("n", { label: "Name", input_type: "email", required: true }),
          select("s", ["Buy", "Sell"], { label: "Side", required: true }),
          A,
        ),
      ],
    ],
    "fields may have descriptions and values": [
      '<form id="f"><input name="n" hint="As on your &quot;ID&quot;" value="Ada">' +
        '<select name="s" hint="Either" value="Sell"><option>Buy</option><option>Sell</option></select>' +
        '<input name="e" hint="" value=""></form>',
      [
        form(
          "f",
          input("n", { hint: 'As on your "ID"', value: "Ada" }),
          select("s", ["Buy", "Sell"], { hint: "Either", value: "Sell" }),
          input("e"),
        ),
      ],
    ],
    "a form may be in a card": [
      '<card title="t"><form id="f"><input name="n"/></form></card>',
      [card("t", form("f", input("n")))],
    ],
    "layout by indentation is not code": [
      `<card title="t">\n    Some text\n    - item\n\n    ${BUTTON}\n\n    <form id="f">\n\n` +
        '        <input name="n">\n    </form>\n</card>',
      [card("t", markdown("Some text\n- item"), A, form("f", input("n")))],
    ],
    "a tag may extend over several lines": [
      '<card\n  title="t">x</card>',
      [card("t", markdown("x"))],
    ],
    "a label may extend over several lines": [
      '<button action="a">\n  Buy\n  now\n</button>',
      [button("a", "Buy now")],
    ],
    "a label is text, not Markdown": [
      '<button action="a">`*B*` <b>now</b> &lt;3</button>',
      [button("a", "`*B*` <b>now</b> <3")],
    ],
    "a button without a label shows its action": [
      '<button action="a"> </button>',
      [button("a", "a")],
    ],
    "line breaks may be of any kind": [`x\r\n\r\n${BUTTON}\ry`, [markdown("x"), A, markdown("y")]],
    "text between options is dropped": [
      '<form id="f"><select name="s">a<option>b</option>c</select></form>',
      [form("f", select("s", ["b"]))],
    ],
  });
});

describe("attributes of markup", () => {
  const titled = (attribute: string, title: string): [string, Block[]] => [
    `<card ${attribute}>x</card>`,
    [card(title, markdown("x"))],
  ];
  examples({
    "may be in double quotes": titled('title="it\'s"', "it's"),
    "may be in single quotes": titled("title='a \"b\"'", 'a "b"'),
    "may contain entities": titled('title="&amp;&lt;&gt;&quot;&#39;&#x27;&apos;"', "&<>\"'''"),
    "have their entities decoded once": titled('title="&amp;lt;"', "&lt;"),
    "keep unknown entities": titled('title="&nope; & &#; &"', "&nope; & &#; &"),
    "have replacement characters for impossible ones": titled(
      'title="&#0;&#xD800;&#9999999;"',
      "\ufffd\ufffd\ufffd",
    ),
    "may contain angle brackets": titled('title="P/E < 20 > 5"', "P/E < 20 > 5"),
    "are ignored if they are unknown": titled('onclick="x()" title="t" style="y" hidden', "t"),
    "have the first of two values": titled('title="1" title="2"', "1"),
    "may have spaces around the equals sign": titled('title = "t" ', "t"),
    "have the type text if theirs is unknown": [
      '<form id="f"><input name="n" type="file" required="false"></form>',
      [form("f", input("n"))],
    ],
    "may have names of the prototype": [
      '<form id="__proto__"><input name="constructor" toString="1"></form>',
      [form("__proto__", input("constructor"))],
    ],
  });
});

describe("invalid or escaped markup", () => {
  const verbatim = [
    "<b>bold</b> <script>alert(1)</script>",
    "<cards>x</cards>",
    "<Card title='x'>x</Card>",
    "<!-- <b> --> <https://example.org>",
    "a < b > c",
    "<button>No action</button>",
    '<button action="">Empty action</button>',
    "<button action=a>Not quoted</button>",
    '<button action="a"/>',
    '<button action="a"b="c">No space</button>',
    '<form>No id</form> <form id="">x</form>',
    '<input name="n"> outside of a form',
    '<select name="s"><option>o</option></select> outside of a form',
    "<option>o</option>",
    '<card title="t">never closed',
    '<form id="f"><input name="n">',
    '<button action="a">never closed',
    '<button action="a">closed wrongly</card>',
    '<button action="a">not\n\nin one paragraph</button>',
    '<card title="forgotten quote>x</card>',
    "closed, never opened</card></form></button></input>",
    '\\<button action="a">escaped</button>',
    '&lt;button action="a"&gt;A&lt;/button&gt;',
    `\`${BUTTON}\``,
    `\`\` \` ${BUTTON} \`\``,
    `over \`two\n${BUTTON} lines\``,
    `\`<card title="\`">x`,
    `\`\`\`\n${BUTTON}\n\`\`\``,
    `\`\`\`html\n${BUTTON}\n\`\`\n~~~\n${BUTTON}`,
    `~~~ a\`b\n${BUTTON}\n~~~`,
    `- item\n\n  \`\`\`\n  ${BUTTON}\n  \`\`\``,
    `> \`\`\`\n> ${BUTTON}\n> \`\`\``,
    `code:\n\n    ${BUTTON}`,
    `\t${BUTTON}`,
    `- item\n\n      ${BUTTON}`,
  ];
  for (const content of verbatim) {
    test(`${JSON.stringify(content)} stays text`, () => {
      expect(parseMarkup(content)).toEqual([markdown(content)]);
    });
  }

  examples({
    "a card in a card stays text": [
      `<card title="1"><card title="2">x${BUTTON}</card>y</card>`,
      [card("1", markdown('<card title="2">x'), A, markdown("</card>y"))],
    ],
    "a form in a form stays text": [
      '<form id="1"><form id="2"><input name="n"></form></form>',
      [form("1", markdown('<form id="2">'), input("n"), markdown("</form>"))],
    ],
    "a card in a form stays text": [
      '<form id="1"><card title="t">x</card></form>',
      [form("1", markdown('<card title="t">x</card>'))],
    ],
    "an unclosed element does not affect others": [
      `<card title="1">${BUTTON}<card title="2">x</card>`,
      [markdown('<card title="1">'), A, card("2", markdown("x"))],
    ],
    "an element closed after the one around it stays text": [
      `<card title="1"><form id="f">${BUTTON}</card></form>`,
      [card("1", markdown('<form id="f">'), A), markdown("</form>")],
    ],
    "a button in an unclosed button is a button": [
      `<button action="b">B ${BUTTON}`,
      [markdown('<button action="b">B'), A],
    ],
    "a missing quote breaks only its own element": [
      `<card title="t>${BUTTON}</card>`,
      [markdown('<card title="t>'), A, markdown("</card>")],
    ],
  });
});

describe("the button in text that only looks like code", () => {
  const shown = [
    `a lone \` backtick ${BUTTON}`,
    `\`code\` ${BUTTON} \`code\``,
    `\\\`${BUTTON}\\\``,
    `\`a\n\n${BUTTON}\``,
    `\`a\n# \`${BUTTON}`,
    `\`\`\`\ncode\n\`\`\`\n${BUTTON}`,
    `a paragraph\n    ${BUTTON}`,
    `1. item\n\n    ${BUTTON}`,
    `- \`\`\`\n  code\n\n${BUTTON}`,
    `> \`\`\`\n${BUTTON}`,
    `> quoted ${BUTTON}`,
    `\\\\${BUTTON}`,
  ];
  for (const content of shown) {
    test(`is found in ${JSON.stringify(content)}`, () => {
      expect(parseMarkup(content).filter(({ type }) => type === "button")).toEqual([A]);
    });
  }
});

describe("content that streams", () => {
  const hidden = [
    "<",
    "</",
    "<car",
    "<card",
    "<button act",
    '<button action="a"',
    '<button action="a" /',
    '<button action="a">Lab',
    '<button action="a">Label</button',
    '<card title="t">text and **more**',
    `<card title="t">${BUTTON}`,
    '<form id="f"><input name="n"><select name="s"><option>o',
    '<card title="a <b> <card',
  ];
  for (const tail of hidden) {
    test(`hides ${JSON.stringify(tail)}`, () => {
      const blocks = parseMarkup(`Hello ${BUTTON} ${tail}`, { streaming: true });
      expect(blocks).toEqual([markdown("Hello"), A]);
    });
  }

  test("shows what cannot become an element", () => {
    for (const tail of ["a < b", "<bo", "<cards", "<button>", "```\n<car"]) {
      const blocks = parseMarkup(`x\n\n${tail}`, { streaming: true });
      expect(blocks).toEqual([markdown(`x\n\n${tail}`.trimEnd())]);
    }
  });

  test("hides tags while a code span may still close after them", () => {
    const parse = (content: string) => parseMarkup(content, { streaming: true });
    expect(parse(`a \` ${BUTTON}`)).toEqual([markdown("a `")]);
    expect(parse(`a \` ${BUTTON}\``)).toEqual([markdown(`a \` ${BUTTON}\``)]);
    expect(parse(`a \` ${BUTTON}\n\n`)).toEqual([markdown("a `"), A]);
    // None of these lines ends the paragraph while it is incomplete.
    for (const line of ["", " ", "#", "-", "- ", "---", "***", "==", "1.", "```", "```js", "b"]) {
      expect(parse(`a \` ${BUTTON}\n${line}`)).toEqual([markdown("a `")]);
    }
    for (const line of ["# ", "- b", "* *", "---\n", "==\n", "> ", "~~~", "```js\n"]) {
      expect(parse(`a \` ${BUTTON}\n${line}`).slice(0, 2)).toEqual([markdown("a `"), A]);
    }
    expect(parse(`a \`\`\`\n\`\`\`js ${BUTTON}`)).toEqual([
      markdown(`a \`\`\`\n\`\`\`js ${BUTTON}`),
    ]);
  });
});

describe("the plain text of a message", () => {
  const previews: [string, string][] = [
    ["# Hello\n\n**bold** _and_ `code` [link](https://x.y)", "Hello bold and code link"],
    ["[\\[a\\] b\\_c](https://x.y) ![d](https://x.y)", "[a] b_c d"],
    ["- one\n- two\n\n> three", "one two three"],
    ["```js\nlet x = 1;\n```", "let x = 1;"],
    ["Title\n===\n\n* * *\n\ntext", "Title text"],
    ["office__delete_all(), __bold__ and __init", "office__delete_all(), bold and init"],
    ["2 * 3, limit_price, \\*kept\\*, &lt;b&gt;", "2 * 3, limit_price, *kept*, <b>"],
    [`<card title="Order">10 AAPL ${BUTTON}</card>`, "Order · 10 AAPL · A"],
    ['<form id="f"><input name="n" label="Limit price"></form>', "Limit price"],
    ["", ""],
  ];
  for (const [content, preview] of previews) {
    test(`from ${JSON.stringify(content)} is ${JSON.stringify(preview)}`, () => {
      expect(plainText(content)).toBe(preview);
    });
  }

  test("is short and well-formed", () => {
    expect(plainText("x".repeat(1000))).toBe(`${"x".repeat(199)}…`);
    const emoji = plainText("👍".repeat(5000), 10);
    expect(emoji).toBe(`${"👍".repeat(9)}…`);
  });
});

test("componentOf finds the button or form with an action", () => {
  const content = `<card title="t">${BUTTON}<form id="f"><input name="n" label="Name"><select name="s" label="Size"></select></form></card> \`<button action="b">B</button>\``;
  expect(componentOf(content, "a")).toEqual({ label: "A", labels: new Map() });
  expect(componentOf(content, "form_submit:f")).toEqual({
    label: null,
    labels: new Map([
      ["n", "Name"],
      ["s", "Size"],
    ]),
  });
  for (const action of ["b", "f", "form_submit:g", ""]) {
    expect(componentOf(content, action)).toBeNull();
  }
});

test("actionTokens finds all buttons and forms, at any depth", () => {
  const content =
    `${BUTTON}<card title="t"><button action="b">B</button><form id="f">` +
    `<button action="c">C</button></form></card><form id="g"></form>\`<form id="h"></form>\``;
  expect(actionTokens(content)).toEqual({
    actions: new Set(["a", "b", "c"]),
    forms: new Set(["f", "g"]),
  });
});

describe("any content", () => {
  const fragment = fc.constantFrom(
    ...['<card title="t">', "<card>", "</card>", '<button action="a">', "</button>", BUTTON],
    ...['<form id="f">', "</form>", "<form>", '<input name="n" required>', "</option>"],
    ...['<select name="s">', "<option>", "</select>", "<option>o</option>", "<b>", "<", ">"],
    ...["`", "``", "```", "~~~", "\n", "\n\n", "    ", "\t", " ", "> ", "- ", "1. ", "# "],
    ...["---", "===", "\\", '"', "'", "&lt;", "=", "/", "text", "\r", "é👍"],
  );
  const codeOrNot = fc.constantFrom(
    ...[BUTTON, BUTTON, "`", "`", "``", "```", "\n", "\n", "\n", "a", " ", "#", "-", "=", "> "],
  );
  const content = fc.oneof(
    fc.array(fragment, { maxLength: 24 }).map((parts) => parts.join("")),
    fc.array(codeOrNot, { maxLength: 12 }).map((parts) => parts.join("")),
    fc.string({ unit: "binary", maxLength: 200 }),
  );
  const elements = (blocks: Block[]) => blocks.filter(({ type }) => type !== "markdown");

  test("yields only known blocks, in places where they are allowed", () => {
    fc.assert(
      fc.property(content, fc.boolean(), (text, streaming) => {
        expectBlocks(parseMarkup(text, { streaming }), ["markdown", "card", "form", "button"]);
        plainText(text);
        actionTokens(text);
      }),
      { numRuns: rounds({ few: 500, all: 3000 }) },
    );
  });

  test("never loses or changes an element while it streams", () => {
    fc.assert(
      fc.property(content, (text) => {
        const final = elements(parseMarkup(text));
        let shown: Block[] = [];
        for (let length = 0; length <= text.length; length++) {
          const now = elements(parseMarkup(text.slice(0, length), { streaming: true }));
          expect(now.slice(0, shown.length)).toEqual(shown);
          shown = now;
        }
        expect(final.slice(0, shown.length)).toEqual(shown);
      }),
      { numRuns: rounds({ few: 600, all: 4000 }) },
    );
  });

  test("agrees with a CommonMark parser on what is code", () => {
    const piece = fc.constantFrom(
      ...["a", "`", "``", "```", "~~~", "\n", "\n\n", "    ", "  ", "\t", " ", "> ", ">", "- "],
      ...["1. ", "2) ", "10. ", "# ", "#", "---", "===", "***", "*", "-", "x\n", "@", "@", "@\n"],
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
        const parts = pieces.join("").split("@");
        const join = (mark: (n: number) => string) =>
          parts.map((part, n) => (n === 0 ? part : mark(n) + part)).join("");
        const { actions } = actionTokens(join((n) => `<button action="${n}">A</button>`));
        const html = Bun.markdown.html(join((n) => `mark${n}.`));
        for (let n = 1; n < parts.length; n++) {
          expect(actions.has(`${n}`)).toBe(!isInCode(html, `mark${n}.`));
        }
      }),
      { numRuns: rounds({ few: 500, all: 3000 }) },
    );
  });
});

describe("well-formed content", () => {
  const words = fc.constantFrom("text", "**bold**", "`<card>`", "- a\n- b", "a < b", "\\` x");
  const field = fc.constantFrom(
    '<input name="n">',
    '<select name="s">\n<option>o</option>\n</select>',
    BUTTON,
  );
  const space = fc.constantFrom("", " ", "\n", "\n\n");
  const sequence = (item: fc.Arbitrary<string>) =>
    fc
      .array(fc.tuple(item, space), { maxLength: 5 })
      .map((items) => items.map(([text, gap]) => text + gap).join(""));
  const forms = sequence(fc.oneof(words, field)).map((inner) => `<form id="f">${inner}</form>`);
  const body = fc.oneof(words, fc.constant(BUTTON), forms);
  const cards = sequence(body).map((inner) => `<card title="t">${inner}</card>`);
  const content = sequence(fc.oneof(body, cards));

  test("is the same streamed and finished", () => {
    fc.assert(
      fc.property(content, (text) => {
        expect(parseMarkup(text, { streaming: true })).toEqual(parseMarkup(text));
      }),
      { numRuns: rounds({ few: 400, all: 2000 }) },
    );
  });
});

describe("escaped text", () => {
  const tricky = fc.constantFrom(
    ...["<", ">", '"', "'", "`", "*", "_", "[x](y)", "# ", "- ", "1. ", "\n", "    ", "&lt;"],
    ...["</card>", "</button>", BUTTON, "<https://x.y>", "http://x.y", "a@b.cd", "~~", "|", "\\"],
    ...["![", "---", "===", "www.x.yz", " ", "é", "👍", "limit_price", "10.5", "-3", "&", "|-|"],
    ...["[a]: b", "~", "**", "__", "> ", "+ ", ":-", "1) ", "\\*", "&amp;lt;"],
  );
  const value = fc
    .oneof(
      fc.array(tricky, { maxLength: 8 }).map((parts) => parts.join("")),
      fc.string({ unit: "binary", maxLength: 40 }),
    )
    // Bun's Markdown parser drops a byte order mark at the beginning of a document.
    .map((text) => text.replace(/\ufeff/g, ""));
  const extensions = { tables: true, strikethrough: true, tasklists: true };

  const entities: Record<string, string> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
  };
  const asHtml = (text: string) => text.replace(/[&<>"]/g, (sign) => entities[sign] ?? "");
  const onOneLine = (text: string) =>
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
    text.toWellFormed().replace(/[\0-\x1f\x7f\u2028\u2029]+/g, " ");

  test("is unchanged except for what would become markup", () => {
    const same = ["Buy 10 AAPL", "limit_price", "10.5", "BRK-B", "12:30", "$5, 3% a/b", "a & b"];
    same.push("trade:buy:AAPL:10", "https://a.test/_next?x=1&y=~me", "# x", "- x", "2 * 3", "[x]");
    same.push("5* hotel", "*required", "it`s", "~5 _a");
    for (const text of same) expect(inertText(text)).toBe(text);
    expect(inertText('<a href="x">*b* _i_ ~~s~~ `c`')).toBe(
      '\\<a href="x">\\*b\\* \\_i\\_ \\~\\~s\\~\\~ \\`c\\`',
    );
    expect(inertText("[x](y) &lt; C:\\dir \\* end\\")).toBe(
      "[x\\](y) &amp;lt; C:\\dir \\\\* end\\\\",
    );
    expect(inertText("I <3 you <~a@b.cd>")).toBe("I <3 you \\<~a@b.cd>");
    expect(inertText("a\r\nb\0\ud800")).toBe("a b \ufffd");
  });

  test("renders as the original text anywhere inside a line", () => {
    fc.assert(
      fc.property(value, (text) => {
        const typed = onOneLine(text).trim();
        fc.pre(typed !== "");
        for (const before of ["- **a:** ", "a “", "- **"]) {
          const after = before === "- **a:** " ? "" : before === "a “" ? "”." : ":** z";
          const inert = before === "- **" ? inertName(typed) : inertText(typed);
          const html = Bun.markdown.html(`${before}${inert}${after}`, extensions);
          const plain = Bun.markdown.html(`${before}y${after}`, extensions);
          expect(html).toBe(plain.replace("y", () => asHtml(typed)));
        }
      }),
      { numRuns: rounds({ few: 500, all: 3000 }) },
    );
  });

  test("renders as the original text beside a name", () => {
    fc.assert(
      fc.property(value, value, (first, second) => {
        const [name, text] = [onOneLine(first).trim(), onOneLine(second).trim()];
        fc.pre(name !== "" && text !== "");
        const line = `- **${inertName(name)}:** ${inertText(text)}`;
        const plain = Bun.markdown.html("- **y:** z", extensions);
        expect(Bun.markdown.html(line, extensions)).toBe(
          plain.replace(/y(.*)z/s, (_, between) => `${asHtml(name)}${between}${asHtml(text)}`),
        );
        const blocks = parseMarkup(`<card title="t">\n\n${line}\n\n</card>`);
        expect(blocks).toMatchObject([{ type: "card", children: [{ type: "markdown" }] }]);
      }),
      { numRuns: rounds({ few: 500, all: 3000 }) },
    );
  });

  test("contains no element, in a line or as a quotation", () => {
    fc.assert(
      fc.property(value, (text) => {
        for (const safe of [`a ${inertText(text)}`, quotedText(text).join("\n")]) {
          const blocks = parseMarkup(`<card title="t">\n\n${safe}\n\n</card>`);
          expect(blocks).toMatchObject([{ type: "card", children: [{ type: "markdown" }] }]);
        }
      }),
      { numRuns: rounds({ few: 500, all: 3000 }) },
    );
  });

  test("of several lines renders as a quotation of plain paragraphs", () => {
    expect(quotedText("# a\n\n- b\n1. c\n===\n> d\n    e")).toEqual([
      "> \\# a",
      ">",
      "> \\- b",
      "> 1\\. c",
      "> \\===",
      "> \\> d",
      "> e",
    ]);
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 5 }), (lines) => {
        const html = Bun.markdown.html(quotedText(lines.join("\n")).join("\n"), extensions);
        const tags = new Set([...html.matchAll(/<\/?(\w+)/g)].map(([, name]) => name));
        for (const tag of tags) expect(["blockquote", "p", "br"]).toContain(tag ?? "");
        const words = (text: string) => text.replace(/\s+/g, " ").trim();
        const typed = lines
          .join("\n")
          .split(/\r\n?|\n/)
          .map(onOneLine)
          .join(" ");
        expect(words(html.replace(/<[^>]*>/g, " "))).toBe(words(asHtml(typed)));
      }),
      { numRuns: rounds({ few: 500, all: 3000 }) },
    );
  });
});

function expectBlocks(blocks: (Block | FormBlock["children"][number])[], allowed: string[]) {
  for (const block of blocks) {
    expect(allowed).toContain(block.type);
    if (block.type === "card") expectBlocks(block.children, ["markdown", "form", "button"]);
    if (block.type === "form") {
      expectBlocks(block.children, ["markdown", "input", "select", "button"]);
    }
  }
}

function isInCode(html: string, mark: string): boolean {
  const before = html.slice(0, html.indexOf(mark));
  // Missing or inside of a tag: part of a fence's info string, of which HTML has only the first word.
  if (!html.includes(mark) || before.lastIndexOf("<") > before.lastIndexOf(">")) return true;
  return before.lastIndexOf("<code") > before.lastIndexOf("</code>");
}
