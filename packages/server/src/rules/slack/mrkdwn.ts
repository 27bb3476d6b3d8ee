/** Reads Slack's `mrkdwn`, which differs from Markdown in most respects. */

import { MAX_CONTENT_BYTES } from "@parley/protocol/operations/messages";
import { isLinkable, MAX_LINE_CHARACTERS, type Run, renderLine } from "./inline.ts";

/** How much of the syntax is read: all; links but no emphasis, code and quotes; or nothing. */
export type Syntax = "mrkdwn" | "links" | "plain";

/** Lines of Markdown. A code block is one of them. */
export function renderText(text: string, syntax: Syntax = "mrkdwn"): string[] {
  const lines = fitting(syntax === "mrkdwn" ? mrkdwnLines(text) : plainLines(text, syntax));
  return lines.slice(0, lines.findLastIndex((line) => line !== "") + 1);
}

/** Without blank lines at the start, and up to the first line that exceeds a message: it is cut there. */
function fitting(lines: Iterable<string>): string[] {
  const kept: string[] = [];
  let characters = 0;
  for (const line of lines) {
    if (line === "" && kept.length === 0) continue;
    kept.push(line);
    characters += line.length + 1;
    if (characters > MAX_CONTENT_BYTES && line !== "") break;
  }
  return kept;
}

/** A text as a single line of runs. */
export const runsOf = (text: string, syntax: Syntax): Run[] =>
  applyStyles(tokensOf(text.replaceAll("\n", " "), syntax));

function* plainLines(text: string, syntax: Syntax): Generator<string> {
  for (const line of text.split("\n")) yield renderLine(runsOf(line, syntax));
}

function* mrkdwnLines(text: string): Generator<string> {
  // Every other part is the inside of a code block.
  const parts = text.split(/```([\s\S]*?)```/);
  for (const [index, part] of parts.entries()) {
    if (index % 2 === 1) {
      yield* codeBlock(decode(part));
      continue;
    }
    const beside = part.replace(index > 0 ? /^ *\n?/ : "", "");
    if (beside !== "") yield* stack(quotedLines(beside.replace(/\n$/, "").split("\n")));
  }
}

/** Leaves room for the fences: a character takes at most 3 bytes of a message. */
const MAX_CODE_CHARACTERS = 10_000;

function codeBlock(code: string): string[] {
  const content = code.replace(/^\n|\n$/g, "");
  if (content.trim() === "") return [];
  const isLong = content.length > MAX_CODE_CHARACTERS;
  const shown = isLong ? `${content.slice(0, MAX_CODE_CHARACTERS).toWellFormed()}…` : content;
  const longest = (shown.match(/`{3,}/g) ?? []).reduce(
    (most, run) => Math.max(most, run.length),
    2,
  );
  const fence = "`".repeat(longest + 1);
  return [`${fence}\n${shown}\n${fence}`];
}

const QUOTE = /^(?:>|&gt;)(?!(?:>|&gt;)) ?/;
const QUOTE_REST = /^(?:>|&gt;){3} ?/;

function* quotedLines(lines: string[]): Generator<[string]> {
  let quotesRest = false;
  for (const line of lines) {
    const isQuoted = quotesRest || QUOTE.test(line) || QUOTE_REST.test(line);
    const content = quotesRest ? line : line.replace(QUOTE, "").replace(QUOTE_REST, "");
    quotesRest ||= QUOTE_REST.test(line);
    const text = renderLine(runsOf(content, "mrkdwn"));
    yield [isQuoted ? quoteLine(text) : text];
  }
}

/** Puts blocks of lines below each other. A line right after a quote would belong to the quote. */
export function* stack(blocks: Iterable<string[]>): Generator<string> {
  let last = "";
  for (const block of blocks) {
    const isAfterQuote = last.startsWith(">") && !block[0]?.startsWith(">");
    if (isAfterQuote && block.length > 0) yield "";
    yield* block;
    last = block.at(-1) ?? last;
  }
}

/** The lines of a piece of Markdown as lines of a block quote. */
export const quoteLine = (piece: string) =>
  piece
    .split("\n")
    .map((line) => (line === "" ? ">" : `> ${line}`))
    .join("\n");

/** A run that is not looked into, a mark of emphasis, or text between these. */
type Token = { run: Run } | { mark: "*" | "_" | "~" } | { text: string };

/** A piece of an address: parentheses in it are paired, and the only escaped character is `&`. */
const PIECE = String.raw`&amp;|\([^\s()<>\`|]*\)|(?!&(?:amp|lt|gt);)[^\s()<>\`|]`;
/** It does not end with punctuation. */
const LAST_PIECE = String.raw`(?:(?![.,;:!?\]'"*_~])(?:${PIECE}))`;

/** Code, a control sequence, an address, several marks (which are text), or one mark. */
const TOKEN = new RegExp(
  String.raw`\`([^\`]+)\`|<([^<>]*)>|(https?://(?:${PIECE})*${LAST_PIECE})|([*_~])\4+|([*_~])`,
  "gi",
);

function tokensOf(line: string, syntax: Syntax): Token[] {
  const tokens: Token[] = [];
  let read = 0;
  for (const match of line.matchAll(TOKEN)) {
    const token = tokenOf(match, syntax);
    if (token === null) continue;
    tokens.push({ text: decode(line.slice(read, match.index)) }, token);
    read = match.index + match[0].length;
  }
  tokens.push({ text: decode(line.slice(read)) });
  return tokens.filter((token) => !("text" in token) || token.text !== "");
}

/** Null if what was found is text. */
function tokenOf(
  [, code, control, address, , mark]: RegExpMatchArray,
  syntax: Syntax,
): Token | null {
  if (address !== undefined) return addressToken(decode(address));
  if (control !== undefined) return syntax === "plain" ? null : controlToken(control);
  if (syntax !== "mrkdwn") return null;
  if (code !== undefined) return { run: { text: decode(code), code: true } };
  return mark === "*" || mark === "_" || mark === "~" ? { mark } : null;
}

const addressToken = (url: string): Token | null =>
  isLinkable(url) ? { run: { text: url, url, bare: true } } : null;

/** What is between `<` and `>`. Null if it is no control sequence, and the brackets are text. */
function controlToken(content: string): Token | null {
  const [target = "", label] = content.split(/\|(.*)/s).map(decode);
  if (/^[@#!]./s.test(target)) return { run: { text: referenceText(target, label) } };
  if (isLinkable(target)) {
    const text = label?.trim() || target.replace(/^mailto:/i, "");
    return { run: { text, url: target } };
  }
  return URL.canParse(target) && label ? { run: { text: label } } : null;
}

/** The text for a person, group or channel of Slack, none of which exists here, or for a date. */
function referenceText(target: string, label: string | undefined): string {
  const [kind = "", name = ""] = [target.charAt(0), target.slice(1)];
  if (kind !== "!") return withPrefix(kind, label || name);
  if (/^(?:here|channel|everyone|subteam\^.*)$/s.test(name)) {
    return withPrefix("@", label || name.replace(/^subteam\^/, ""));
  }
  return label || name.replace(/\^.*$/s, "");
}

const withPrefix = (prefix: string, name: string) => prefix + name.replace(/^[@#]/, "");

const characterOf: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">" };

/** Slack escapes these three characters and no others. */
const decode = (text: string) =>
  text.replace(/&(?:amp|lt|gt);/g, (each) => characterOf[each] ?? each);

const styleOf = { "*": "bold", _: "italic", "~": "strike" } as const;

function applyStyles(tokens: Token[]): Run[] {
  const paired = pairMarks(tokens);
  const style = { bold: false, italic: false, strike: false };
  const runs: Run[] = [];
  let characters = 0;
  for (const [index, token] of tokens.entries()) {
    // The rest of a line is not shown.
    if (characters > MAX_LINE_CHARACTERS) break;
    if ("mark" in token && paired.has(index)) {
      style[styleOf[token.mark]] = !style[styleOf[token.mark]];
      continue;
    }
    const run = "run" in token ? token.run : { text: "mark" in token ? token.mark : token.text };
    runs.push({ ...style, ...run });
    characters += run.text.length;
  }
  return runs;
}

/** The positions of marks that begin or end emphasis. The others are text. */
function pairMarks(tokens: Token[]): Set<number> {
  const paired = new Set<number>();
  const open = new Map<string, { index: number; texts: number }>();
  let texts = 0;
  for (const [index, token] of tokens.entries()) {
    if (!("mark" in token)) {
      texts++;
      continue;
    }
    const before = edge(tokens[index - 1], -1);
    const after = edge(tokens[index + 1], 0);
    const start = open.get(token.mark);
    if (start && start.texts < texts && /\S/.test(before) && !isWord(after)) {
      paired.add(start.index).add(index);
      open.delete(token.mark);
    } else if (!start && !isWord(before) && /\S/.test(after)) {
      open.set(token.mark, { index, texts });
    }
  }
  return paired;
}

const isWord = (character: string) => /[\p{L}\p{N}]/u.test(character);

/** The first or last character of a neighbour. */
function edge(token: Token | undefined, position: 0 | -1): string {
  if (token === undefined) return "";
  if ("run" in token) return "`";
  return ("mark" in token ? token.mark : token.text).at(position) ?? "";
}
