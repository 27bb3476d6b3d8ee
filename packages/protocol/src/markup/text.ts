/** Escapes and unescapes text, and makes previews. */

import type { Block, FormBlock } from "./elements.ts";

/**
 * Escapes a value for use inside a line of Markdown, not at its start, outside of emphasis. Escapes only
 * what would become markup, so that the value is also readable unrendered. Line breaks become spaces.
 * Other values in the line are escaped by `inertName`.
 */
export function inertText(value: string): string {
  const line = singleLine(value);
  // A single one has nothing to pair with.
  const single = ["~", "_", "*", "`"].filter(
    (mark) => line.indexOf(mark) === line.lastIndexOf(mark),
  );
  return escaped(line, (mark) => !single.includes(mark));
}

/** Escapes like `inertText`, also for use inside emphasis and beside other values. */
export const inertName = (value: string): string => escaped(singleLine(value), () => true);

/** Escapes a value of several lines: each becomes a line of a block quote. */
export function quotedText(value: string): string[] {
  return value
    .split(/\r\n?|\n/)
    .map((line) => escaped(singleLine(line).trim(), () => true).replace(LINE_START_MARK, "$1\\$2"))
    .map((line) => (line === "" ? ">" : `> ${line}`));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
const CONTROL = /[\0-\x1f\x7f\u2028\u2029]+/g;
const singleLine = (value: string) => value.toWellFormed().replace(CONTROL, " ");

/**
 * Syntax of CommonMark and of this markup inside a line: a backslash before punctuation or at the end,
 * code, strikethrough, emphasis (except a star between spaces and an underscore inside a word), the
 * middle of a link, a tag or an address in angle brackets, a character reference.
 */
const INLINE_MARK =
  /\\(?=[!-/:-@[-`{-~]|$)|[`~]|(?<!\s)\*|\*(?!\s)|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|\](?=\()|<(?=[a-z/!?]|[^\s<>@]+@)|&(?=#?\w+;)/giu;

/** What at the start of a line makes it a heading, quote, list, table or link definition. */
const LINE_START_MARK = /^(\d{0,9})([#>+\-=|:[]|(?<=\d)[.)])/;

const escaped = (line: string, isSyntax: (mark: string) => boolean) =>
  line.replace(INLINE_MARK, (mark) => {
    if (!isSyntax(mark)) return mark;
    // Not `\&`: previews remove backslashes before they resolve character references.
    return mark === "&" ? "&amp;" : `\\${mark}`;
  });

const characterOf: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

export function unescapeEntities(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(amp|lt|gt|quot|apos));/gi,
    (entity, decimal?: string, hex?: string, name?: string) => {
      if (name !== undefined) return characterOf[name] ?? entity;
      return characterAt(decimal === undefined ? Number(`0x${hex}`) : Number(decimal));
    },
  );
}

function characterAt(code: number): string {
  const valid = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return valid ? String.fromCodePoint(code) : "\ufffd";
}

export function describe(block: Block | FormBlock["children"][number], maxLength: number): string {
  if (block.type === "form") return "";
  if (block.type === "card") return block.title;
  if (block.type === "markdown") return stripMarkdown(beginning(block.text, 8 * maxLength));
  return block.label;
}

/** Truncates the input of a preview: what lies far beyond its length has no effect on it. */
const beginning = (text: string, length: number) =>
  text.slice(0, length).replace(/[\ud800-\udbff]$/, "");

const FENCE_LINE = /^[ \t>]*(?:`{3,}|~{3,}).*$/gm;
const RULE_LINE = /^[ \t]*(?:[-=*_][ \t]*)+$/gm;
const LINE_START = /^[ \t>]*(?:(?:#{1,6}|[-+*]|\d{1,9}[.)])[ \t]+)*/gm;
const INLINE_MARKERS =
  /\\([!-/:-@[-`{-~])|!?\[((?:\\.|[^[\]\\])*)\]\([^()]*\)|`+|~~|\*+(?=\S)|(?<=\S)\*+|(?<![\p{L}\p{N}_])_+|_+(?![\p{L}\p{N}_])/gu;
const ESCAPED = /\\([!-/:-@[-`{-~])/g;

function stripMarkdown(text: string): string {
  const lines = text.replace(FENCE_LINE, "").replace(RULE_LINE, "").replace(LINE_START, "");
  const plain = lines.replace(
    INLINE_MARKERS,
    (_, escaped?: string, label?: string) => escaped ?? label?.replace(ESCAPED, "$1") ?? "",
  );
  return unescapeEntities(plain);
}

export function shorten(text: string, maxLength: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  const characters = Array.from(line);
  if (characters.length <= maxLength) return line;
  const kept = characters.slice(0, maxLength - 1).join("");
  return `${kept.trimEnd()}…`;
}
