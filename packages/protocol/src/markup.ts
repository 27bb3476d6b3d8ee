/**
 * The component markup: CommonMark with a handful of elements, and no other HTML.
 *
 * Parsing takes three steps, each linear in the length of the content:
 * lines tell code blocks from paragraphs, paragraphs give tags outside of code spans,
 * and tags, paired, give the tree. Whatever is not an element stays in the text around it.
 */

export interface MarkdownBlock {
  type: "markdown";
  text: string;
}
export interface ButtonBlock {
  type: "button";
  action: string;
  label: string;
}
export interface InputField {
  type: "input";
  name: string;
  label: string;
  input_type: InputType;
  required: boolean;
}
export interface SelectField {
  type: "select";
  name: string;
  label: string;
  required: boolean;
  options: string[];
}
export interface FormBlock {
  type: "form";
  id: string;
  children: (InputField | SelectField | ButtonBlock | MarkdownBlock)[];
}
export interface CardBlock {
  type: "card";
  title: string;
  children: Block[];
}
export type Block = MarkdownBlock | CardBlock | ButtonBlock | FormBlock;

const inputTypes = ["text", "number", "email", "date"] as const;
export type InputType = (typeof inputTypes)[number];

export interface MarkupOptions {
  /** The content is still growing: what is not decided yet is left out instead of shown as text. */
  streaming?: boolean;
}

/**
 * Never throws. While streaming, an element that was there for a beginning of the content
 * is there, unchanged, for every longer one, and in the finished message.
 */
export function parseMarkup(content: string, { streaming = false }: MarkupOptions = {}): Block[] {
  const lines = content.replace(/\r\n?/g, "\n");
  // With a line break at the end of finished content every line is whole, so that
  // a line without one is known to be still growing.
  const scan = scanBlocks(streaming ? lines : `${lines}\n`, streaming);
  return buildTree(scan);
}

/** Makes a value inert in Markdown, in the text of an element and in an attribute: it reads as it is. */
export function escapeMarkup(value: string): string {
  return value
    .toWellFormed()
    .replace(UNSAFE, (character) => entityOf[character] ?? `&#${character.charCodeAt(0)};`);
}

/** One line that says what a message is about: text without its markers, elements as their labels. */
export function plainText(content: string, maxLength = 200): string {
  const parts: string[] = [];
  let length = 0;
  for (const block of everyBlock(parseMarkup(content))) {
    const part = shorten(describe(block, maxLength), maxLength);
    if (part !== "") parts.push(part);
    length += part.length;
    if (length > maxLength) break;
  }
  return shorten(parts.join(" · "), maxLength);
}

/** What a message lets people press and submit. */
export function actionTokens(content: string): { actions: Set<string>; forms: Set<string> } {
  const actions = new Set<string>();
  const forms = new Set<string>();
  for (const block of everyBlock(parseMarkup(content))) {
    if (block.type === "button") actions.add(block.action);
    if (block.type === "form") forms.add(block.id);
  }
  return { actions, forms };
}

// Text: escaping, unescaping, previews.

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

function unescapeEntities(text: string): string {
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

function* everyBlock(blocks: Block[]): Generator<Block | FormBlock["children"][number]> {
  for (const block of blocks) {
    yield block;
    if (block.type === "card") yield* everyBlock(block.children);
    if (block.type === "form") yield* block.children;
  }
}

function describe(block: Block | FormBlock["children"][number], maxLength: number): string {
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

function shorten(text: string, maxLength: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  const characters = Array.from(line);
  if (characters.length <= maxLength) return line;
  const kept = characters.slice(0, maxLength - 1).join("");
  return `${kept.trimEnd()}…`;
}

// Tree: paired tags become blocks, everything between them is text.

type Option = { type: "option"; label: string };
type Parent = { type: "root"; children: Block[] } | CardBlock | FormBlock | SelectField;
type Piece = Block | InputField | SelectField | Option;

/** A tag of ours outside of code. With a piece it is or begins an element, without it ends one. */
interface Tag {
  start: number;
  end: number;
  piece: Piece | null;
  /** Of a card, form or select that is closed. */
  closer: Tag | null;
}

const mayHold: Record<Parent["type"], readonly Piece["type"][]> = {
  root: ["markdown", "card", "form", "button"],
  card: ["markdown", "form", "button"],
  form: ["markdown", "input", "select", "button"],
  select: ["option"],
};

function buildTree({ content, tags, cut }: Scan): Block[] {
  const end = Math.min(cut, content.length);
  const root = { type: "root" as const, children: [] };
  const frames: { parent: Parent; closer: Tag | null }[] = [];
  let parent: Parent = root;
  let closer: Tag | null = null;
  let textStart = 0;
  for (const tag of tags) {
    if (tag.start >= end) break;
    if (tag !== closer && !fits(tag, parent)) continue;
    put(parent, textBlock(content, textStart, tag.start, parent));
    textStart = tag.end;
    if (tag === closer) {
      ({ parent, closer } = frames.pop() ?? { parent: root, closer: null });
    } else {
      put(parent, tag.piece);
      if (tag.closer === null) continue;
      frames.push({ parent, closer });
      parent = tag.piece as Parent;
      closer = tag.closer;
    }
  }
  put(parent, textBlock(content, textStart, end, parent));
  return root.children;
}

function fits({ piece, closer }: Tag, parent: Parent): boolean {
  if (piece === null || (isContainer(piece.type) && closer === null)) return false;
  return mayHold[parent.type].includes(piece.type);
}

function put(parent: Parent, piece: Piece | null) {
  if (piece === null) return;
  if (parent.type !== "select") (parent.children as Piece[]).push(piece);
  else if (piece.type === "option") parent.options.push(piece.label);
}

function textBlock(content: string, start: number, end: number, parent: Parent) {
  let last = end;
  while (last > start && " \t\n".includes(content.charAt(last - 1))) last--;
  if (last === start) return null;
  const source = content.slice(start, last);
  // Next to a tag white space is layout, and so is indentation inside of an element.
  const besideTag = start === 0 ? source : source.replace(/^[ \t]+/, "");
  const laidOut = parent.type === "root" ? besideTag : dedent(besideTag);
  return { type: "markdown" as const, text: laidOut.replace(/^(?:[ \t]*\n)+/, "") };
}

/** Takes from each line after the first the indentation that all of them share. */
function dedent(text: string): string {
  const [first = "", ...lines] = text.split("\n");
  let shared = Infinity;
  for (const line of lines) {
    const indentation = line.search(/[^ \t]/);
    if (indentation >= 0 && indentation < shared) shared = indentation;
  }
  return [first, ...lines.map((line) => line.slice(Math.min(shared, line.length)))].join("\n");
}

// Inline: the tags in a paragraph that no code span covers.

const tagNames = ["card", "button", "form", "input", "select", "option"] as const;
type TagName = (typeof tagNames)[number];
type ContainerName = "card" | "form" | "select";
const isContainer = (name: string | undefined): name is ContainerName =>
  name === "card" || name === "form" || name === "select";

/** An escaped character, a run of backticks, the beginning of a tag, or what may become one. */
const MARK = /\\[\s\S]|`+|<\/?(?:card|button|form|input|select|option)(?=[\s/>])|<\/?[a-z]{0,6}$/g;
const ATTRIBUTE = /\s+([a-z_:][\w:.-]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'))?/iy;
const TAG_END = /\s*(\/?)>/y;
const UNFINISHED_TAG = /\s*(?:\/|=\s*(?:"[^"]*|'[^']*)?)?$/y;

interface Mark {
  at: number;
  end: number;
  text: string;
  /** Of the beginning of a tag; undefined for every other mark. */
  name: TagName | undefined;
}

/** Text that is read as one by Markdown, so that a code span or a tag may go on over its lines. */
interface Paragraph {
  scan: Scan;
  /** Where in the content the text begins. */
  offset: number;
  text: string;
  /** The text may still grow, so that what is not closed yet is not decided yet. */
  growing: boolean;
  marks: Mark[];
  backticks: Map<number, { starts: number[]; next: number }>;
}

/** Where to read on; after something undecided nothing more can be told. */
const UNDECIDED = Infinity;

function scanParagraph(scan: Scan, start: number, end: number, growing: boolean) {
  const text = scan.content.slice(start, end + 1);
  const marks = Array.from(text.matchAll(MARK), markOf);
  if (marks.length === 0) return;
  const backticks = backtickRuns(text);
  const paragraph = { scan, offset: start, text, growing, marks, backticks };
  let position = 0;
  for (const [index, mark] of marks.entries()) {
    if (mark.at >= position) position = readMark(paragraph, mark, index);
  }
}

function leaveOut({ scan, offset }: Paragraph, from: Mark): number {
  scan.cut = offset + from.at;
  return UNDECIDED;
}

function markOf({ 0: text, index, input }: RegExpExecArray): Mark {
  const end = index + text.length;
  const name = text.startsWith("<") && end < input.length ? nameIn(text) : "";
  return { at: index, end, text, name: tagNames.find((each) => each === name) };
}

const nameIn = (tag: string) => tag.replace(/^<\/?/, "");

function readMark(paragraph: Paragraph, mark: Mark, index: number): number {
  if (mark.text.startsWith("\\")) return mark.end;
  if (mark.text.startsWith("`")) return readBackticks(paragraph, mark, index);
  if (mark.name !== undefined) return readTag(paragraph, mark, index);
  return readLastMark(paragraph, mark);
}

function readLastMark(paragraph: Paragraph, mark: Mark): number {
  const mayBecomeTag = tagNames.some((name) => name.startsWith(nameIn(mark.text)));
  return mayBecomeTag ? leaveOut(paragraph, mark) : mark.end;
}

/** A run of backticks opens a code span if another of its length follows, and is text otherwise. */
function readBackticks(paragraph: Paragraph, mark: Mark, index: number): number {
  const length = mark.end - mark.at;
  const runs = paragraph.backticks.get(length);
  while (runs && (runs.starts[runs.next] ?? Infinity) < mark.end) runs.next++;
  const closing = runs?.starts[runs.next];
  if (closing !== undefined) return closing + length;
  if (!paragraph.growing) return mark.end;
  // The closing run may still come and cover the tags from here on.
  const tag = paragraph.marks.slice(index).find(({ text }) => text.startsWith("<"));
  return tag ? leaveOut(paragraph, tag) : UNDECIDED;
}

function backtickRuns(text: string): Paragraph["backticks"] {
  const runs: Paragraph["backticks"] = new Map();
  for (const { 0: run, index } of text.matchAll(/`+/g)) {
    const same = runs.get(run.length);
    if (same) same.starts.push(index);
    else runs.set(run.length, { starts: [index], next: 0 });
  }
  return runs;
}

function readTag(paragraph: Paragraph, mark: Mark, index: number): number {
  const tag = parseTag(paragraph, mark, index);
  if (tag === "unfinished") return leaveOut(paragraph, mark);
  if (tag === null) return mark.end;
  if (mark.text.startsWith("</")) closeElement(paragraph, mark, tag);
  else if (mark.name === "button" || mark.name === "option") {
    return readLabelled(paragraph, mark, tag);
  } else openElement(paragraph, mark, tag);
  return tag.end;
}

interface ParsedTag {
  end: number;
  attributes: Map<string, string>;
  /** Index of the mark at which the next tag begins. */
  next: number;
}

/** Null when it is malformed; "unfinished" when more text can still complete it. */
function parseTag(
  paragraph: Paragraph,
  mark: Mark,
  index: number,
): ParsedTag | "unfinished" | null {
  const { text, marks, growing } = paragraph;
  let next = index + 1;
  while (next < marks.length && marks[next]?.name === undefined) next++;
  // No tag reaches beyond the beginning of another: a forgotten quote spoils one element, not all.
  const source = text.slice(mark.end, marks[next]?.at);
  const { attributes, length } = parseAttributes(source);
  const end = matchAt(TAG_END, source, length);
  if (end === null) {
    const unfinished = growing && next === marks.length && matchAt(UNFINISHED_TAG, source, length);
    return unfinished ? "unfinished" : null;
  }
  const closing = mark.text.startsWith("</");
  if (closing && attributes.size > 0) return null;
  if (end[1] === "/" && (closing || mark.name !== "input")) return null;
  return { end: mark.end + length + end[0].length, attributes, next };
}

function parseAttributes(source: string) {
  const attributes = new Map<string, string>();
  let length = 0;
  for (;;) {
    const match = matchAt(ATTRIBUTE, source, length);
    if (match === null) return { attributes, length };
    const name = match[1]?.toLowerCase() ?? "";
    if (!attributes.has(name)) attributes.set(name, unescapeEntities(match[2] ?? match[3] ?? ""));
    length += match[0].length;
  }
}

function matchAt(sticky: RegExp, text: string, position: number) {
  sticky.lastIndex = position;
  return sticky.exec(text);
}

/** A button or an option: the text up to its closing tag is its label, and not Markdown. */
function readLabelled(paragraph: Paragraph, mark: Mark, tag: ParsedTag): number {
  const action = tag.attributes.get("action") ?? "";
  if (mark.name === "button" && action === "") return tag.end;
  const closing = paragraph.marks[tag.next];
  if (closing === undefined) return paragraph.growing ? leaveOut(paragraph, mark) : tag.end;
  if (closing.text !== `</${mark.name}`) return tag.end;
  const closer = parseTag(paragraph, closing, tag.next);
  if (closer === "unfinished") return leaveOut(paragraph, mark);
  if (closer === null) return tag.end;
  const label = labelText(paragraph.text.slice(tag.end, closing.at));
  if (mark.name === "option") addTag(paragraph, mark, closer.end, { type: "option", label });
  else addTag(paragraph, mark, closer.end, { type: "button", action, label: label || action });
  return closer.end;
}

const labelText = (source: string) =>
  unescapeEntities(source.replace(/[ \t\n]+/g, " ").replace(/^ | $/g, ""));

function openElement(paragraph: Paragraph, mark: Mark, { attributes, end }: ParsedTag) {
  const piece = pieceOf(mark.name, attributes);
  const { open, openCount } = paragraph.scan;
  // Outside of a form a field is text, and must not hold back what follows.
  if (piece === null || (piece.type === "select" && openCount.form === 0)) return;
  const tag = addTag(paragraph, mark, end, piece);
  if (!isContainer(piece.type)) return;
  open.push(tag);
  openCount[piece.type]++;
}

/** Null when an attribute is missing without which the element is of no use. */
function pieceOf(name: TagName | undefined, attributes: Map<string, string>): Piece | null {
  if (name === "card") return { type: name, title: attributes.get("title") ?? "", children: [] };
  if (name === "form") {
    const id = attributes.get("id");
    return id ? { type: name, id, children: [] } : null;
  }
  const field = attributes.get("name");
  if (!field) return null;
  const label = attributes.get("label") || field;
  const required = attributes.has("required") && attributes.get("required") !== "false";
  if (name === "select") return { type: name, name: field, label, required, options: [] };
  const input_type = inputTypes.find((type) => type === attributes.get("type")) ?? "text";
  return { type: "input", name: field, label, input_type, required };
}

/** Closes the nearest open element of the name; those opened since then were never closed. */
function closeElement(paragraph: Paragraph, mark: Mark, { end }: ParsedTag) {
  const { open, openCount } = paragraph.scan;
  if (!isContainer(mark.name) || openCount[mark.name] === 0) return;
  for (let tag = open.pop(); tag; tag = open.pop()) {
    const name = tag.piece?.type;
    if (isContainer(name)) openCount[name]--;
    if (name !== mark.name) continue;
    tag.closer = addTag(paragraph, mark, end, null);
    return;
  }
}

function addTag({ scan, offset }: Paragraph, mark: Mark, end: number, piece: Piece | null): Tag {
  const tag = { start: offset + mark.at, end: offset + end, piece, closer: null };
  scan.tags.push(tag);
  return tag;
}

// Blocks: which lines are code and which make up a paragraph, as CommonMark has it.

interface Scan {
  content: string;
  /** In the order of the content. */
  tags: Tag[];
  /** Elements not closed yet, outermost first. */
  open: Tag[];
  openCount: Record<ContainerName, number>;
  /** From here on nothing can be told before more content comes. */
  cut: number;
  /** Block quotes and list items around the line, outermost first: a quote, or an item's width. */
  containers: number[];
  /** The innermost list item has nothing in it yet. */
  emptyItem: boolean;
  fence: { mark: string; size: number; depth: number } | null;
  paragraph: { start: number; end: number } | null;
}

/** The place reached on a line: the next character that is no space, and the columns used up. */
interface Cursor {
  at: number;
  column: number;
  base: number;
}

const QUOTE = 0;
/** Deeper ones are text, which keeps the work per line bounded. */
const MAX_CONTAINERS = 32;

const LIST_MARKER = /(?:[-+*]|(\d{1,9})[.)])(?=[ \t\n])/y;
const HEADING = /#{1,6}[ \t\n]/y;
const UNDERLINE = /(?:=+|-+)[ \t]*\n/y;
const FENCE = /`{3,}(?=[^`\n]*\n)|~{3,}/y;
const MAY_BECOME_FENCE = /`{3,}[^`\n]*$/y;
const FENCE_END = /(`{3,}|~{3,})[ \t]*\n/y;

function scanBlocks(content: string, streaming: boolean): Scan {
  const scan: Scan = {
    content,
    tags: [],
    open: [],
    openCount: { card: 0, form: 0, select: 0 },
    cut: Infinity,
    containers: [],
    emptyItem: false,
    fence: null,
    paragraph: null,
  };
  for (let start = 0; start < content.length; ) {
    const lineBreak = content.indexOf("\n", start);
    const end = lineBreak < 0 ? content.length : lineBreak;
    scanLine(scan, start, end);
    start = end + 1;
  }
  endParagraph(scan, streaming);
  if (streaming) scan.cut = Math.min(scan.cut, scan.open[0]?.start ?? Infinity);
  return scan;
}

function scanLine(scan: Scan, start: number, end: number) {
  const cursor = { at: start, column: 0, base: 0 };
  skipSpace(scan, cursor);
  const matched = matchContainers(scan, cursor);
  if (scan.fence && matched >= scan.fence.depth) return scanFenced(scan, cursor);
  scan.fence = null;
  const depth = openContainers(scan, cursor, matched);
  if (isBlank(scan, cursor)) scanBlank(scan, depth, depth > matched);
  else if (isIndented(scan, cursor)) scanIndented(scan, cursor, end, depth);
  else scanLeaf(scan, cursor, end, depth);
}

function scanBlank(scan: Scan, depth: number, opens: boolean) {
  // An item may begin with one blank line, not with two.
  const ends = scan.emptyItem && !opens && depth === scan.containers.length;
  closeBlocks(scan, ends ? depth - 1 : depth);
  scan.emptyItem = opens && scan.containers.at(-1) !== QUOTE;
}

function scanFenced(scan: Scan, cursor: Cursor) {
  const run = isIndented(scan, cursor) ? null : matchAt(FENCE_END, scan.content, cursor.at)?.[1];
  if (run && scan.fence && run[0] === scan.fence.mark && run.length >= scan.fence.size) {
    scan.fence = null;
  }
}

function scanIndented(scan: Scan, cursor: Cursor, end: number, depth: number) {
  if (scan.paragraph) extendParagraph(scan, cursor, end, depth);
  else closeBlocks(scan, depth);
}

function scanLeaf(scan: Scan, cursor: Cursor, end: number, depth: number) {
  const { content } = scan;
  const fence = matchAt(FENCE, content, cursor.at)?.[0];
  if (fence) {
    closeBlocks(scan, depth);
    scan.fence = { mark: fence.charAt(0), size: fence.length, depth };
  } else if (matchAt(HEADING, content, cursor.at)) {
    closeBlocks(scan, depth);
    scanParagraph(scan, cursor.at, end, end === content.length);
  } else if (isBreak(scan, cursor) || isUnderline(scan, cursor, depth)) {
    closeBlocks(scan, depth);
  } else if (!matchAt(MAY_BECOME_FENCE, content, cursor.at)) {
    extendParagraph(scan, cursor, end, depth);
  }
}

function extendParagraph(scan: Scan, cursor: Cursor, end: number, depth: number) {
  if (scan.paragraph === null) {
    closeBlocks(scan, depth);
    scan.paragraph = { start: cursor.at, end };
  }
  scan.paragraph.end = end;
}

function closeBlocks(scan: Scan, depth: number) {
  endParagraph(scan, false);
  scan.emptyItem = false;
  scan.containers.length = depth;
}

function endParagraph(scan: Scan, growing: boolean) {
  if (scan.paragraph) scanParagraph(scan, scan.paragraph.start, scan.paragraph.end, growing);
  scan.paragraph = null;
}

/** How many of the block quotes and list items around the previous line go on in this one. */
function matchContainers(scan: Scan, cursor: Cursor): number {
  let matched = 0;
  for (const width of scan.containers) {
    if (width === QUOTE) {
      if (isIndented(scan, cursor) || !enterQuote(scan, cursor)) break;
    } else if (!isBlank(scan, cursor)) {
      if (cursor.column - cursor.base < width) break;
      cursor.base += width;
    }
    matched++;
  }
  return matched;
}

function openContainers(scan: Scan, cursor: Cursor, matched: number): number {
  let depth = matched;
  while (depth < MAX_CONTAINERS && !isIndented(scan, cursor)) {
    const width = enterQuote(scan, cursor) ? QUOTE : enterListItem(scan, cursor, depth);
    if (width === null) break;
    closeBlocks(scan, depth);
    scan.containers.push(width);
    depth++;
  }
  return depth;
}

function enterQuote(scan: Scan, cursor: Cursor): boolean {
  if (scan.content[cursor.at] !== ">") return false;
  cursor.at++;
  cursor.base = ++cursor.column;
  skipSpace(scan, cursor);
  // One space after the mark belongs to it.
  if (cursor.column > cursor.base) cursor.base++;
  return true;
}

function enterListItem(scan: Scan, cursor: Cursor, depth: number): number | null {
  const marker = matchAt(LIST_MARKER, scan.content, cursor.at);
  if (marker === null || isBreak(scan, cursor)) return null;
  const after = { ...cursor, at: cursor.at + marker[0].length };
  const markerEnd = cursor.column + marker[0].length;
  after.column = markerEnd;
  skipSpace(scan, after);
  const empty = after.at === scan.content.length || isBlank(scan, after);
  const interrupts = scan.paragraph !== null && depth === scan.containers.length;
  if (interrupts && (empty || Number(marker[1] ?? 1) !== 1)) return null;
  const padding = after.column - markerEnd;
  const width = markerEnd - cursor.base + (empty || padding > 4 ? 1 : padding);
  Object.assign(cursor, after, { base: cursor.base + width });
  return width;
}

function skipSpace(scan: Scan, cursor: Cursor) {
  for (; ; cursor.at++) {
    const character = scan.content[cursor.at];
    if (character === " ") cursor.column++;
    else if (character === "\t") cursor.column += 4 - (cursor.column % 4);
    else return;
  }
}

const isBlank = (scan: Scan, cursor: Cursor) => scan.content[cursor.at] === "\n";

/** Inside of elements indentation is layout, and makes no code. */
const isIndented = (scan: Scan, cursor: Cursor) =>
  cursor.column - cursor.base >= 4 && scan.open.length === 0;

function isBreak({ content }: Scan, { at }: Cursor): boolean {
  const mark = content.charAt(at);
  if (mark === "" || !"*-_".includes(mark)) return false;
  let count = 0;
  for (let index = at; index < content.length; index++) {
    const character = content[index];
    if (character === "\n") return count >= 3;
    if (character === mark) count++;
    else if (character !== " " && character !== "\t") return false;
  }
  return false;
}

function isUnderline(scan: Scan, { at }: Cursor, depth: number): boolean {
  const continues = scan.paragraph !== null && depth === scan.containers.length;
  return continues && matchAt(UNDERLINE, scan.content, at) !== null;
}
