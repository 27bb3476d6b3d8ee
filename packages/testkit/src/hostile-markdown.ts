import { MAX_CONTENT_BYTES } from "../../protocol/src/operations/messages.ts";

const repeated = (text: string) =>
  text.repeat(Math.floor(MAX_CONTENT_BYTES / Buffer.byteLength(text)));

const around = (open: string, middle: string, close: string) => {
  const times = Math.floor(MAX_CONTENT_BYTES / (open.length + close.length + 1));
  return open.repeat(times) + middle + close.repeat(times);
};

function staircase(): string {
  let text = "";
  for (let depth = 0; text.length < MAX_CONTENT_BYTES; depth++)
    text += `${"  ".repeat(depth)}- a\n`;
  return text.slice(0, MAX_CONTENT_BYTES);
}

const runsOfEveryLength = Array.from({ length: 250 }, (_, length) => "`".repeat(length)).join(" ");

const texts: Record<string, string> = {
  "block quotes": repeated(">"),
  "block quotes with spaces": repeated("> "),
  "block quotes on lines": `${">".repeat(100)}a\n`.repeat(320),
  bullets: repeated("- "),
  "ordered items": repeated("1. "),
  "quoted items": repeated("> - "),
  "nested list": staircase(),
  "loose list": repeated("- a\n\n"),
  "list of all kinds": repeated("1) a\n2. b\n"),
  "task list": repeated("- [ ] a\n"),
  "opening brackets": repeated("["),
  "closing brackets": repeated("]"),
  "nested brackets": around("[", "a", "]"),
  "nested links": around("[", "a", "](b)"),
  "opened images": repeated("!["),
  "opened links": repeated("[a]("),
  "opened targets": repeated("[a](<"),
  "opened titles": repeated('[a](b "'),
  "opened parentheses": `[a](${repeated("(")}`,
  references: repeated("[a][b]"),
  definitions: repeated("[a]: b\n"),
  "opened definitions": repeated("[a\n"),
  stars: repeated("*"),
  "stars before words": repeated("*a "),
  "stars between words": repeated("*a_b"),
  "runs of stars": repeated("a***"),
  "nested emphasis": around("*a ", "b", " c*"),
  "nested strong emphasis": around("**a ", "b", " c**"),
  "mixed emphasis": around("*a **b ", "c", "b** a*"),
  underscores: repeated("_a "),
  strikethrough: repeated("~~a ~b "),
  "wide table": `|${"a|".repeat(8000)}\n|${"-|".repeat(8000)}\n`,
  "long table": `|a|b|\n|-|-|\n${repeated("|\n")}`,
  "table that is filled up": `${"|a".repeat(4000)}\n${"|-".repeat(4000)}\n${"a\n".repeat(8000)}`,
  pipes: repeated("|"),
  backticks: repeated("`"),
  "opened code": repeated("`a "),
  "backticks of every length": runsOfEveryLength,
  fences: repeated("```\n"),
  "fences of both kinds": repeated("```a\n~~~\n"),
  "less-than signs": repeated("<"),
  "opened tags": repeated("<a "),
  tags: repeated("<div>\n"),
  "opened comments": repeated("<!--"),
  "opened CDATA": repeated("<![CDATA["),
  attributes: `<a ${repeated("a ")}`,
  "opened attributes": `<a ${repeated('a="')}`,
  "opened cards": repeated('<card title="a">'),
  "nested cards": around('<card title="a">\n', "a", "</card>\n"),
  "opened card titles": repeated('<card title="'),
  "opened buttons": repeated('<button action="a">'),
  "opened forms": repeated('<form id="a">'),
  "opened selects": `<form id="a">${repeated('<select name="a">')}`,
  autolinks: repeated("<http://a"),
  ampersands: repeated("&"),
  "unfinished entities": repeated("&#1"),
  entities: repeated("&#x10ffff;"),
  backslashes: repeated("\\"),
  "escaped line breaks": repeated("\\\n"),
  "blank lines": repeated("\n"),
  spaces: `a${repeated(" ")}`,
  "spaces before a line break": `a${repeated(" ")}\nb`,
  tabs: repeated("\ta"),
  "carriage returns": repeated("\r"),
  "heading marks": repeated("#"),
  "closing heading marks": `# a${repeated(" #")}`,
  "underlined headings": repeated("a\n-\n"),
  breaks: repeated("* * "),
  lines: repeated("a\n"),
  addresses: repeated("http://a "),
  "endless address": `http://a/${repeated("&a;")}`,
  "host names": repeated("www.a"),
  "e-mail addresses": repeated("a@b."),
  handles: repeated("@aa:bb "),
  "handles with hyphens": repeated(`@aa:b${"-".repeat(30)} `),
  "endless handle": `@aa:b${repeated("-b")}`,
  "joined emoji": repeated("👨‍👩‍👧"),
  "combining marks": `a${repeated("\u0301")}`,
  "direction marks": repeated("\u202e"),
  "everything unclosed": repeated('> - *a **b [c](d `e <card title="f"> | &amp ~~\n'),
};

/** Texts of the largest message size that make parsers recurse, backtrack or produce large output. */
export const hostileMarkdown: Record<string, string> = Object.fromEntries(
  Object.entries(texts).map(([name, text]) => [name, text.slice(0, MAX_CONTENT_BYTES)]),
);
