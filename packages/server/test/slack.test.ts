import { describe, expect, test } from "bun:test";
import { mentionedHandles, parseMarkup, plainText } from "@parley/protocol/markup";
import { MAX_CONTENT_BYTES } from "@parley/protocol/operations/messages";
import { rounds } from "@parley/testkit/rounds.ts";
import fc from "fast-check";
import { Failure } from "../src/rules/failure.ts";
import { renderText, runsOf } from "../src/rules/slack/mrkdwn.ts";
import { slackContent } from "../src/rules/slack.ts";
import {
  ALERTMANAGER_CUSTOM,
  ALERTMANAGER_DEFAULT,
  SLACK_WEBHOOK_BLOCKS,
  SLACK_WEBHOOK_TEXT,
} from "./support/slack-payloads.ts";

const contentOf = (payload: unknown) => slackContent(JSON.stringify(payload));
const ofText = (text: string) => contentOf({ text });
const ofBlocks = (...blocks: unknown[]) => contentOf({ blocks });
const ofAttachment = (attachment: unknown) => contentOf({ attachments: [attachment] });
const lines = (...texts: string[]) => texts.join("\n");
const plain = (text: string) => ({ type: "plain_text", text });
const mrkdwn = (text: string) => ({ type: "mrkdwn", text });

describe("Markdown is made of what is sent by", () => {
  test("Alertmanager with its default template", () => {
    expect(slackContent(ALERTMANAGER_DEFAULT)).toBe(
      "> 🔴 **[\\[FIRING:1\\]  (HighLatency api-1:9090 critical)](http://alertmanager.example.com/#/alerts?receiver=slack)**",
    );
  });

  test("Alertmanager with templates of its own", () => {
    expect(slackContent(ALERTMANAGER_CUSTOM)).toBe(
      lines(
        "**resolved** on [Grafana](https://grafana.example.com/)",
        "",
        "> 🟢 **[\\[RESOLVED\\]  (HighLatency api-1:9090 critical)](http://alertmanager.example.com/#/alerts?receiver=slack)**",
        "> **Summary:** p99 over 2s \\<1m> & rising",
        "> `api-1:9090` & ask \\@alice_oncall\\_",
        "> **Severity:** critical",
        "> **Instances:** 1",
        ">",
        "> [Runbook :book:](https://runbooks.example.com/high_latency?a=1&b=%282%29)",
        "> *cluster eu-1*",
      ),
    );
  });

  test("@slack/webhook with a text", () => {
    expect(slackContent(SLACK_WEBHOOK_TEXT)).toBe("Hello **world** [there](https://example.com/)");
  });

  test("@slack/webhook with blocks, which replace the text, and attachments", () => {
    expect(slackContent(SLACK_WEBHOOK_BLOCKS)).toBe(
      lines(
        "### Deploy finished",
        "",
        "**api** is live",
        "",
        "> **Env:** prod",
        ">",
        "> *1973-11-29 21:33 UTC*",
      ),
    );
  });

  test("Alertmanager, with a readable preview", () => {
    expect(plainText(slackContent(ALERTMANAGER_DEFAULT))).toBe(
      "🔴 [FIRING:1] (HighLatency api-1:9090 critical)",
    );
  });
});

describe("the body of a Slack payload", () => {
  test("may be a form with the JSON in its field", () => {
    const form = new URLSearchParams({ payload: '{"text":"a + b = 100%"}' });
    expect(slackContent(form.toString())).toBe("a + b = 100%");
  });

  test("may be JSON after white space", () => {
    expect(slackContent('\n {"text":"a"}\n')).toBe("a");
  });

  test.each([
    ["nothing", "", "payload"],
    ["no JSON", "hello", "payload"],
    ["broken JSON", '{"text":', "payload"],
    ["a list", '[{"text":"a"}]', "payload"],
    ["a form without the field", "text=a", "payload"],
    ["a form with broken JSON", "payload={", "payload"],
    ["a form with something else", "payload=1", "payload"],
    ["an empty payload", "{}", "payload"],
    ["only white space", '{"text":" \\n "}', "payload"],
    ["only unknown blocks", '{"blocks":[{"type":"input"}]}', "payload"],
    ["a wrong text", '{"text":["a"]}', "text"],
    ["a wrong list", '{"attachments":{}}', "attachments"],
    ["a block without a type", '{"blocks":[{}]}', "blocks.0.type"],
    ["a wrong block", '{"blocks":[{"type":"section","text":"a"}]}', "blocks.0.text"],
    [
      "a wrong element",
      '{"blocks":[{"type":"context","elements":[{"type":"mrkdwn","text":{}}]}]}',
      "blocks.0.elements.0.text",
    ],
    ["a wrong field", '{"attachments":[{"fields":["a"]}]}', "attachments.0.fields.0"],
    [
      "too many attachments",
      JSON.stringify({ attachments: Array.from({ length: 101 }, () => ({ text: "a" })) }),
      "attachments",
    ],
  ])("is refused with %s, and the failure says where", (_, body, field) => {
    const failure = failureOf(body);
    expect(failure.code).toBe("bad_request");
    expect(Object.keys(failure.parameters?.fields ?? {})).toEqual([field]);
  });

  test("may have fields and types that are not known, and nulls", () => {
    const blocks = [{ type: "video", title: 1 }, { type: "constructor" }, null].slice(0, 2);
    expect(contentOf({ text: "a", blocks, attachments: null, metadata: {} })).toBe("a");
    expect(contentOf({ attachments: [{ text: "a", title: null, fields: null }] })).toBe("> a");
  });

  test("may have numbers and booleans as texts", () => {
    expect(ofAttachment({ fields: [{ title: "Up", value: true }, { value: 7 }] })).toBe(
      "> **Up:** true\n> 7",
    );
  });
});

describe("mrkdwn", () => {
  test.each([
    ["*bold*", "**bold**"],
    ["_italic_", "*italic*"],
    ["~strike~", "~~strike~~"],
    ["*_~all~_*", "~~***all***~~"],
    ["*bold _both_ bold*", "**bold** ***both*** **bold**"],
    ["(*bold*), _it_!", "(**bold**), *it*!"],
    ["`co*de*`", "`co*de*`"],
    ["*not * bold", "\\*not * bold"],
    ["2*3*4 snake_case_name", "2\\*3\\*4 snake_case_name"],
    ["**Markdown**", "\\*\\*Markdown\\*\\*"],
    ["line *one\ntwo* three", "line \\*one\ntwo\\* three"],
    ["a &amp; b &lt;c&gt; &quot;", "a & b \\<c> &amp;quot;"],
    ["&amp;lt;", "&amp;lt;"],
    ["one\r\ntwo\rthree", "one\ntwo\nthree"],
    ["\n\na\n\n\nb\n\n", "a\n\n\nb"],
    ["C:\\temp ~/x", "C:\\temp \\~/x"],
  ])("%p becomes %p", (text, expected) => expect(ofText(text)).toBe(expected));

  test.each([
    ["<https://a.test/x_y|the *label*>", "[the \\*label\\*](https://a.test/x_y)"],
    ["<https://a.test>", "[https://a.test](https://a.test/)"],
    ["*<https://a.test|x>*", "**[x](https://a.test/)**"],
    ["<https://a.test/?a=1&amp;b=2|x>", "[x](https://a.test/?a=1&b=2)"],
    ["<https://a.test/(b)|[x]>", "[\\[x\\]](https://a.test/%28b%29)"],
    ["<mailto:ops@a.test|Ops>", "[Ops](mailto:ops@a.test)"],
    ["<mailto:ops@a.test>", "[ops@a.test](mailto:ops@a.test)"],
    ["see https://a.test/x_y.", "see https://a.test/x_y."],
    ["*https://a.test/x*", "**https://a.test/x**"],
    ["https://a.test/_x_", "[https://a.test/\\_x](https://a.test/_x)\\_"],
    ["(https://a.test/x(y))", "(https://a.test/x(y))"],
    ["<javascript:alert(1)|x>", "x"],
    ["<data:text/html,a|x>", "x"],
    ["<https://user:secret@a.test|x>", "x"],
    ["<not a link>", "\\<not a link>"],
    ["<|>", "\\<|>"],
  ])("the link %p becomes %p", (text, expected) => expect(ofText(text)).toBe(expected));

  test.each([
    ["<@U024BE7LH>", "\\@U024BE7LH"],
    ["<@U024BE7LH|bob>", "\\@bob"],
    ["<!here> <!channel> <!everyone>", "\\@here \\@channel \\@everyone"],
    ["<!here|here>", "\\@here"],
    ["<!subteam^S012|@ops>", "\\@ops"],
    ["<!subteam^S012>", "\\@S012"],
    ["<#C012|general>", "#general"],
    ["<#C012>", "#C012"],
    ["<!date^1392734382^{date}|Feb 18>", "Feb 18"],
    ["<!unknown>", "unknown"],
    ["@alice ops@a.test", "\\@alice ops@a.test"],
  ])("the mention %p becomes %p", (text, expected) => {
    expect(ofText(text)).toBe(expected);
  });

  test("quotes and code blocks become those of Markdown", () => {
    expect(ofText("> one\n&gt; two\nthree ```a\n  b```four")).toBe(
      lines("> one", "> two", "", "three", "```", "a", "  b", "```", "four"),
    );
    expect(ofText("a\n>>> b\nc")).toBe("a\n> b\n> c");
    expect(ofText("```open")).toBe("\\`\\`\\`open");
    expect(ofText("```a `b` &lt;c&gt;```")).toBe("```\na `b` <c>\n```");
  });

  test("a code span keeps its backticks inside", () => {
    expect(ofText("`a`")).toBe("`a`");
  });

  test("nothing at the start of a line becomes a block", () => {
    for (const [text, expected] of [
      ["- a\n+ b\n* c", "\\- a\n\\+ b\n\\* c"],
      ["1. a\n2) b\n3.5 c", "1\\. a\n2\\) b\n3.5 c"],
      ["# a\n#1 b", "\\# a\n#1 b"],
      ["a\n---\n===", "a\n\\---\n\\==="],
      ["a | b\n--- | :--", "a | b\n\\--- | :--"],
      ["[a]: https://b.test", "[a\\]: https://b.test"],
      [":tada: a", ":tada: a"],
      ["    code", "\u00a0\u00a0\u00a0\u00a0code"],
      ["~~~\na", "\\~\\~\\~\na"],
    ] as const) {
      expect(ofText(text)).toBe(expected);
    }
  });

  test("is only read as far as the payload says", () => {
    expect(contentOf({ text: "*a* <https://a.test|b>", mrkdwn: false })).toBe(
      "\\*a\\* [b](https://a.test/)",
    );
  });
});

describe("Markdown is made of", () => {
  test("a section with text, fields and an accessory", () => {
    expect(
      ofBlocks({
        type: "section",
        text: mrkdwn("*a*\nb"),
        fields: [mrkdwn("*c*"), plain("*d*")],
        accessory: { type: "button", text: plain("Open"), url: "https://a.test" },
      }),
    ).toBe(lines("**a**", "b", "", "**c**", "", "\\*d\\*", "", "[Open](https://a.test/)"));
  });

  test("a header, a divider and an image", () => {
    expect(
      ofBlocks(
        { type: "header", text: plain("A <b> #\nc #") },
        { type: "divider" },
        { type: "image", image_url: "https://a.test/i.png", alt_text: "a [b]", title: plain("t") },
      ),
    ).toBe(lines("### A \\<b> # c \\#", "", "---", "", "t", "![a \\[b\\]](https://a.test/i.png)"));
  });

  test("a context with texts and images", () => {
    const image = { type: "image", image_url: "https://a.test/i.png", alt_text: "cat" };
    expect(ofBlocks({ type: "context", elements: [image, mrkdwn("*a*"), plain("b")] })).toBe(
      "![cat](https://a.test/i.png) · **a** · b",
    );
  });

  test("actions: buttons with an address are links, other elements are left out", () => {
    const elements = [
      { type: "button", text: plain("Approve"), value: "yes" },
      { type: "button", text: plain("View"), url: "https://a.test" },
      { type: "static_select", options: [] },
      { type: "button", text: plain("Docs"), url: "https://b.test" },
    ];
    expect(ofBlocks({ type: "actions", elements })).toBe(
      "[View](https://a.test/) · [Docs](https://b.test/)",
    );
  });

  test("its text if all of its blocks are of other types", () => {
    const rich = { type: "rich_text", elements: [{ type: "rich_text_section", elements: [] }] };
    expect(contentOf({ text: "*a*", blocks: [rich] })).toBe("**a**");
  });

  test("Markdown, which stays as it is, unless something in it would be live", () => {
    const ofMarkdown = (...texts: string[]) =>
      ofBlocks(...texts.map((text) => ({ type: "markdown", text })));
    expect(ofMarkdown("## a\n\n- **b**\n")).toBe("## a\n\n- **b**");
    expect(ofMarkdown("**b** @alice")).toBe("\\*\\*b\\*\\* \\@alice");
    expect(ofMarkdown('<card title="a">', "b</card>")).toBe('\\<card title="a">\n\nb\\</card>');
  });
});

describe("an attachment in Slack's format", () => {
  test("shows all of its fields", () => {
    expect(
      ofAttachment({
        fallback: "not shown",
        pretext: "*before*",
        author_name: "Ada",
        author_link: "https://a.test",
        title: "Title *x*",
        title_link: "https://b.test",
        text: "text\n```code```",
        fields: [
          { title: "One", value: "1", short: true },
          { title: "Two", value: "> 2\n3" },
          { value: "no title" },
        ],
        image_url: "https://c.test/i.png",
        footer: "foot_er",
        ts: 1_700_000_000,
        color: "warning",
      }),
    ).toBe(
      lines(
        "**before**",
        "",
        "> 🟡 [Ada](https://a.test/)",
        "> **[Title \\*x\\*](https://b.test/)**",
        "> text",
        "> ```",
        "> code",
        "> ```",
        "> **One:** 1",
        "> **Two:**",
        "> > 2",
        ">",
        "> 3",
        "> no title",
        ">",
        "> ![image](https://c.test/i.png)",
        "> *foot_er · 2023-11-14 22:13 UTC*",
      ),
    );
  });

  test("shows its fallback if there is nothing else", () => {
    expect(ofAttachment({ fallback: "*a* @b", color: "good" })).toBe("> \\*a\\* \\@b");
  });

  test("may be one of several, and may contain blocks", () => {
    const attachments = [{ blocks: [{ type: "section", text: mrkdwn("*a*") }] }, { text: "b" }];
    expect(contentOf({ text: "t", attachments })).toBe("t\n\n> **a**\n\n> b");
  });

  test("has emphasis only where mrkdwn_in says", () => {
    const fields = [{ title: "f", value: "*c*" }];
    expect(ofAttachment({ pretext: "*a*", text: "*b*", fields, mrkdwn_in: ["text"] })).toBe(
      "\\*a\\*\n\n> **b**\n> **f:** \\*c\\*",
    );
  });

  test.each([
    ["danger", "🔴"],
    ["#D63232", "🔴"],
    ["#ff8800", "🟠"],
    ["eecc00", "🟡"],
    ["#36a64f", "🟢"],
    ["#439FE0", "🔵"],
    ["#7700cc", "🟣"],
    ["#000000", "⚫"],
    ["#dddddd", "⚪"],
  ])("the color %s is %s", (color, sign) => {
    expect(ofAttachment({ title: "a", color })).toBe(`> ${sign} **a**`);
  });

  test("has no color or time if they are invalid", () => {
    const attachment = { title: "a", color: "constructor", ts: "never", footer: "b" };
    expect(ofAttachment(attachment)).toBe("> **a**\n>\n> *b*");
  });
});

describe("hostile payloads", () => {
  test("long content is cut between lines", () => {
    const content = ofText(Array.from({ length: 20_000 }, () => "é").join("\n"));
    expect(Buffer.byteLength(content)).toBeLessThanOrEqual(MAX_CONTENT_BYTES);
    expect(content).toEndWith("é\n\n…");
  });

  test("a long line is cut, and so is long code", () => {
    expect(ofText("é".repeat(40_000))).toBe(`${"é".repeat(4000)}…`);
    const code = ofText(`\`\`\`${"語".repeat(39_000)}\`\`\``);
    expect(code).toBe(`\`\`\`\n${"語".repeat(10_000)}…\n\`\`\``);
  });

  test("what follows the first 40,000 characters is left out, whatever it would become", () => {
    const section = (index: number) => ({
      type: "section",
      text: mrkdwn(`<!date^1^${"d".repeat(5000)}|${index}>`),
    });
    const sections = Array.from({ length: 40 }, (_, index) => section(index));
    const shown = ["0", "1", "2", "3", "4", "5", "6", "…"];
    expect(ofBlocks(...sections)).toBe(shown.join("\n\n"));
    const quoted = shown.flatMap((text) => (text === "…" ? [] : [`> ${text}`, ">"])).slice(0, -1);
    expect(ofAttachment({ blocks: sections })).toBe(lines(...quoted, "", "…"));
  });

  test("a text is cut at a line end, and an address is never cut", () => {
    const filler = { type: "section", text: mrkdwn(`<!date^1^${"d".repeat(39_900)}|a>`) };
    const long = lines("whole", "b".repeat(100));
    expect(ofBlocks(filler, { type: "section", text: plain(long) })).toBe("a\n\nwhole\n\n…");
    const address = `https://a.test/${"b".repeat(100)}`;
    const image = { type: "image", image_url: address, alt_text: "c" };
    expect(ofBlocks(filler, image, { type: "divider" })).toBe("a\n\n…");
    expect(ofBlocks(filler, { type: "section", text: mrkdwn(`go to ${address}`) })).toBe(
      "a\n\ngo to\n\n…",
    );
  });

  test.each([
    ["code blocks", "```a".repeat(10_000)],
    ["lines", "a\n".repeat(20_000)],
  ])("no more %s are rendered than fit into a message", (_, text) => {
    const rendered = renderText(text).join("\n").length;
    expect(rendered).toBeGreaterThan(MAX_CONTENT_BYTES - 10);
    expect(rendered).toBeLessThan(MAX_CONTENT_BYTES + 10);
  });

  test("no more of a line is styled than is shown of it", () => {
    const shown = runsOf("*a* ".repeat(10_000), "mrkdwn").map(({ text }) => text);
    expect(shown.join("").length).toBe(4001);
  });

  test("blank lines at the start or the end do not count toward the limit", () => {
    expect(ofText(`${"\n".repeat(39_000)}a`)).toBe("a");
    expect(ofText(`a${"\n".repeat(39_000)}`)).toBe("a");
    expect(ofText(`a${"\n".repeat(39_000)}b`)).toEndWith("\n\n…");
  });

  test.each([
    ["marks", "*_~".repeat(13_000)],
    ["backticks", "`".repeat(40_000)],
    ["brackets", "<".repeat(40_000)],
    ["spaces", `a${" ".repeat(39_000)}b`],
    ["number signs", `${"#".repeat(39_000)} a`],
    ["addresses", "https://a.test/(".repeat(2500)],
    ["parentheses in an address", `https://a.test/${"a(".repeat(19_000)}`],
    ["punctuation", `https://${".".repeat(39_000)}`],
    ["entities", "&amp;".repeat(8000)],
    ["links", "<https://a.test/語語語|a>".repeat(1600)],
    ["quotes", ">".repeat(40_000)],
  ])("a text full of %s is handled in linear time, in every place", (_, text) => {
    const begin = performance.now();
    for (const payload of [
      { text },
      { blocks: [{ type: "header", text: plain(text) }] },
      {
        attachments: [{ title: text, text, fields: [{ title: text, value: text }], footer: text }],
      },
    ]) {
      expectHarmless(contentOf(payload));
    }
    expect(performance.now() - begin).toBeLessThan(20_000);
  });

  const fragment = fc.constantFrom(
    ...["@alice", "@", "alice", "@alice:claude", "\\", "\\\\", "`", "``", "```", "\n", " ", "    "],
    ...['<card title="x">', "</card>", '<button action="a">b</button>', '<form id="f">', "</form>"],
    ...[
      "<",
      ">",
      "|",
      "card",
      "&lt;",
      "&gt;",
      "&amp;",
      "&",
      "lt;",
      "&#64;",
      "*",
      "_",
      "~",
      "[",
      "]",
    ],
    ...[
      "(",
      ")",
      "<@U1|card>",
      "<!here>",
      "<https://x.test/@alice|",
      "https://x.test/@alice",
      "![",
    ],
    ...[
      "mailto:-@alice",
      "<mailto:-@alice>",
      "\0",
      "\ud800",
      "\u2028",
      "\r",
      "#",
      "- ",
      "1. ",
      "é",
    ],
    ...["<!date^1^a|card>", "🙂", "\t", '"', "'", "=", "---", "> "],
  );
  const hostileText = fc.array(fragment, { maxLength: 24 }).map((parts) => parts.join(""));

  test("no text becomes a mention or a component", () => {
    const syntax = fc.constantFrom("mrkdwn" as const, "links" as const, "plain" as const);
    fc.assert(
      fc.property(hostileText.map(cleaned), syntax, (text, kind) => {
        expectInert(renderText(text, kind).join("\n"));
      }),
      { numRuns: rounds({ few: 500, all: 3000 }) },
    );
  });

  test("plain text is shown as it was written", () => {
    fc.assert(
      fc.property(hostileText.map(cleaned), (text) => {
        const typed = text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
        const html = htmlOf(renderText(text, "plain").join("\n"));
        const tags = new Set([...html.matchAll(/<\/?(\w+)/g)].map(([, name = ""]) => name));
        for (const tag of tags) expect(["p", "br", "a"]).toContain(tag);
        expect(wordsOf(html)).toBe(words(asHtml(typed)));
      }),
      { numRuns: rounds({ few: 500, all: 3000 }) },
    );
  });

  const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary);
  const textObject = fc.record({
    type: fc.constantFrom("mrkdwn", "plain_text"),
    text: hostileText,
  });
  const block = fc.oneof(
    fc.record({ type: fc.constant("section"), text: textObject, fields: fc.array(textObject) }),
    fc.record({ type: fc.constant("header"), text: textObject }),
    fc.record({ type: fc.constant("markdown"), text: hostileText }),
    fc.record({ type: fc.constant("context"), elements: fc.array(textObject) }),
    fc.record({ type: fc.constant("image"), image_url: hostileText, alt_text: hostileText }),
  );
  const attachment = fc.record({
    fallback: optional(hostileText),
    pretext: optional(hostileText),
    author_name: optional(hostileText),
    author_link: optional(hostileText),
    title: optional(hostileText),
    title_link: optional(hostileText),
    text: optional(hostileText),
    fields: fc.array(fc.record({ title: hostileText, value: hostileText }), { maxLength: 3 }),
    blocks: fc.array(block, { maxLength: 2 }),
    actions: fc.array(fc.record({ text: hostileText, url: hostileText }), { maxLength: 2 }),
    image_url: optional(hostileText),
    color: optional(hostileText),
    footer: optional(hostileText),
    ts: optional(hostileText),
  });
  const payload = fc.record({
    text: optional(hostileText),
    blocks: fc.array(block, { maxLength: 4 }),
    attachments: fc.array(attachment, { maxLength: 3 }),
  });

  test("no payload becomes a mention or a component", () => {
    fc.assert(
      fc.property(payload, (value) => {
        const content = contentOrFailure(JSON.stringify(value));
        if (typeof content === "string") expectHarmless(content);
      }),
      { numRuns: 500 },
    );
  });

  test("no body fails in any other way", () => {
    const anyJson = fc.jsonValue().map((value) => JSON.stringify(value));
    const misplaced = fc
      .record({ text: fc.jsonValue(), blocks: fc.jsonValue(), attachments: fc.jsonValue() })
      .map((value) => JSON.stringify(value));
    const form = fc.oneof(anyJson, misplaced).map((json) => `payload=${encodeURIComponent(json)}`);
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: "binary" }), anyJson, misplaced, form), (body) => {
        const content = contentOrFailure(body);
        if (typeof content === "string") expectHarmless(content);
      }),
      { numRuns: rounds({ few: 200, all: 1000 }) },
    );
  });
});

/** Text as it is after the payload has been parsed. */
const cleaned = (text: string) => text.toWellFormed().replace(/[\0\r\u2028]/g, " ");

const EXTENSIONS = { tables: true, strikethrough: true, tasklists: true, autolinks: true };
const htmlOf = (content: string) => Bun.markdown.html(content, EXTENSIONS);
const asHtml = (text: string) => Bun.escapeHTML(text).replaceAll("&#x27;", "'");
const words = (text: string) => text.replace(/\s+/g, " ").trim();
/** The text that a reader sees. */
const wordsOf = (html: string) => words(html.replace(/<[^>]*>/g, ""));

function contentOrFailure(body: string): string | Failure {
  try {
    return slackContent(body);
  } catch (error) {
    if (error instanceof Failure && error.code === "bad_request") return error;
    throw error;
  }
}

function failureOf(body: string): Failure {
  const result = contentOrFailure(body);
  if (typeof result === "string") throw new Error(`accepted as ${result}`);
  return result;
}

function expectInert(content: string): void {
  expect(mentionedHandles(content)).toEqual([]);
  expect(parseMarkup(content).filter(({ type }) => type !== "markdown")).toEqual([]);
}

function expectHarmless(content: string): void {
  expectInert(content);
  expect(content.trim()).not.toBe("");
  expect(content.isWellFormed() && !content.includes("\0")).toBe(true);
  expect(Buffer.byteLength(content)).toBeLessThanOrEqual(MAX_CONTENT_BYTES);
}
