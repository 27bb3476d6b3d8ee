/** Escaping, unescaping, previews. */

import type { Block, FormBlock } from "./elements.ts";

/**
 * Makes a value inert inside a line of Markdown, where it does not stand first: it reads as it was
 * typed, rendered or not. Only what would become markup is escaped; line breaks become spaces.
 */
export function inertText(value: string): string {
  const line = singleLine(value);
  // One that stands alone has nothing to pair with.
  const single = ["~", "_"].filter((mark) => line.indexOf(mark) === line.lastIndexOf(mark));
  return escaped(line, (mark) => !single.includes(mark));
}

/** Makes a value of several lines inert: each becomes a line of a block quote. */
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
 * What CommonMark, or this markup, takes for syntax inside a line: a backslash before a sign or at
 * the end, code, strikethrough, emphasis (a star between spaces and an underscore inside a word are
 * none), the middle of a link, a tag, a character reference.
 */
const INLINE_MARK =
  /\\(?=[!-/:-@[-`{-~]|$)|[`~]|(?<!\s)\*|\*(?!\s)|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|\](?=\()|<(?=[a-z/!?])|&(?=#?\w+;)/giu;

/** What makes a line a heading, a quote, a list, a table or a link definition when it stands first. */
const LINE_START_MARK = /^(\d{0,9})([#>+\-=|:[]|(?<=\d)[.)])/;

const escaped = (line: string, isSyntax: (mark: string) => boolean) =>
  line.replace(INLINE_MARK, (mark) => {
    if (!isSyntax(mark)) return mark;
    // A preview undoes backslashes before it undoes character references.
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

/** A preview is short: what lies far beyond its length need not be read. */
const beginning = (text: string, length: number) =>
  text.slice(0, length).replace(/[\ud800-\udbff]$/, "");

const FENCE_LINE = /^[ \t>]*(?:`{3,}|~{3,}).*$/gm;
const RULE_LINE = /^[ \t]*(?:[-=*_][ \t]*)+$/gm;
const LINE_START = /^[ \t>]*(?:(?:#{1,6}|[-+*]|\d{1,9}[.)])[ \t]+)*/gm;
const INLINE_MARKERS =
  /\\([!-/:-@[-`{-~])|!?\[([^[\]]*)\]\([^()]*\)|`+|~~|\*+(?=\S)|(?<=\S)\*+|(?<![\p{L}\p{N}])_+|_+(?![\p{L}\p{N}])/gu;

function stripMarkdown(text: string): string {
  const lines = text.replace(FENCE_LINE, "").replace(RULE_LINE, "").replace(LINE_START, "");
  const plain = lines.replace(
    INLINE_MARKERS,
    (_, escaped?: string, label?: string) => escaped ?? label ?? "",
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
