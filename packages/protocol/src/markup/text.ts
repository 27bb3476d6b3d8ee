/** Escaping, unescaping, previews. */

import type { Block, FormBlock } from "./elements.ts";

/** Makes a value inert in Markdown, in the text of an element and in an attribute: it reads as it is. */
export function escapeMarkup(value: string): string {
  return value
    .toWellFormed()
    .replace(UNSAFE, (character) => entityOf[character] ?? `&#${character.charCodeAt(0)};`);
}

/**
 * Character references work alike in Markdown, in labels and in attributes, and Markdown never takes
 * one for syntax; a backslash would show in an attribute. Marks that mean nothing inside a word or
 * a number stay, so that `limit_price` and `10.5` remain readable.
 */
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: line breaks and tabs are syntax too
  /[\0-\x1f!-#&-+<-@[-^`{-~]|(?<![\da-z])[-_]|[-_](?![\da-z])|(?<!\d)[.:]|[.:](?!\d)|^ | $|(?<=\s) /gi;

const entityOf: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "\0": "\ufffd",
};
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
