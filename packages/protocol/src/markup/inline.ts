/** Finds the tags of a paragraph outside of code spans. */

import { inputTypes, isContainer, type Piece, type TagName, tagNames } from "./elements.ts";
import { matchAt, type Scan, type Tag } from "./scan.ts";
import { unescapeEntities } from "./text.ts";

/** An escaped character, a run of backticks, the beginning of a tag, or at the end a possible one. */
const MARK = /\\[\s\S]|`+|<\/?(?:card|button|form|input|select|option)(?=[\s/>])|<\/?[a-z]{0,6}$/g;
const ATTRIBUTE = /\s+([a-z_:][\w:.-]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'))?/iy;
const TAG_END = /\s*(\/?)>/y;
const UNFINISHED_TAG = /\s*(?:\/|=\s*(?:"[^"]*|'[^']*)?)?$/y;

interface Mark {
  at: number;
  end: number;
  text: string;
  /** The name of the tag that begins here; undefined for every other mark. */
  name: TagName | undefined;
}

/** A paragraph: code spans and tags may extend over several of its lines. */
interface Paragraph {
  scan: Scan;
  /** The position of the text in the content. */
  offset: number;
  text: string;
  /** Whether more text may follow, which could close what is still open. */
  growing: boolean;
  marks: Mark[];
  /** The positions of backtick runs, by length. */
  backticks: Map<number, { starts: number[]; next: number }>;
}

/** In place of the position to continue at: the rest depends on text that has not come yet. */
const UNDECIDED = Infinity;

export function scanParagraph(scan: Scan, start: number, end: number, growing: boolean) {
  const text = scan.content.slice(start, end + 1);
  const marks = Array.from(text.matchAll(MARK), markOf);
  if (marks.length === 0) return void scan.prose.push(text);
  const backticks = backtickRuns(text);
  const paragraph = { scan, offset: start, text, growing, marks, backticks };
  let position = 0;
  let read = 0;
  for (const [index, mark] of marks.entries()) {
    if (mark.at < position) continue;
    position = readMark(paragraph, mark, index);
    if (!mark.text.startsWith("`") || position === mark.end || position === UNDECIDED) continue;
    scan.prose.push(text.slice(read, mark.at));
    read = position;
  }
  scan.prose.push(text.slice(read));
}

/** Cuts the content at a mark, because what it becomes depends on text that has not come yet. */
function cutAt({ scan, offset }: Paragraph, from: Mark): number {
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
  return mayBecomeTag ? cutAt(paragraph, mark) : mark.end;
}

/** A run of backticks opens a code span if a run of the same length follows. Otherwise it is text. */
function readBackticks(paragraph: Paragraph, mark: Mark, index: number): number {
  const length = mark.end - mark.at;
  const runs = paragraph.backticks.get(length);
  while (runs && (runs.starts[runs.next] ?? Infinity) < mark.end) runs.next++;
  const closing = runs?.starts[runs.next];
  if (closing !== undefined) return closing + length;
  if (!paragraph.growing) return mark.end;
  // A closing run may still come and turn the tags from here on into code.
  const tag = paragraph.marks.slice(index).find(({ text }) => text.startsWith("<"));
  return tag ? cutAt(paragraph, tag) : UNDECIDED;
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
  if (tag === "unfinished") return cutAt(paragraph, mark);
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

/** Returns null for a malformed tag, and "unfinished" for one that more text may complete. */
function parseTag(
  paragraph: Paragraph,
  mark: Mark,
  index: number,
): ParsedTag | "unfinished" | null {
  const { text, marks, growing } = paragraph;
  let next = index + 1;
  while (next < marks.length && marks[next]?.name === undefined) next++;
  // A tag ends before the next one begins, so that a missing quote breaks only one element.
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

/** Reads a button or an option: the text up to its closing tag is its label, not Markdown. */
function readLabelled(paragraph: Paragraph, mark: Mark, tag: ParsedTag): number {
  const action = tag.attributes.get("action") ?? "";
  if (mark.name === "button" && action === "") return tag.end;
  const closing = paragraph.marks[tag.next];
  if (closing === undefined) return paragraph.growing ? cutAt(paragraph, mark) : tag.end;
  if (closing.text !== `</${mark.name}`) return tag.end;
  const closer = parseTag(paragraph, closing, tag.next);
  if (closer === "unfinished") return cutAt(paragraph, mark);
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
  // Outside of a form a field is text, and must not delay what follows while streaming.
  if (piece === null || (piece.type === "select" && openCount.form === 0)) return;
  const tag = addTag(paragraph, mark, end, piece);
  if (!isContainer(piece.type)) return;
  open.push(tag);
  openCount[piece.type]++;
}

/** Returns null if a required attribute is missing. */
function pieceOf(name: TagName | undefined, attributes: Map<string, string>): Piece | null {
  if (name === "card") return { type: name, title: attributes.get("title") ?? "", children: [] };
  if (name === "form") {
    const id = attributes.get("id");
    return id ? { type: name, id, children: [] } : null;
  }
  const fieldName = attributes.get("name");
  if (!fieldName) return null;
  const hint = attributes.get("hint");
  const value = attributes.get("value");
  const field = {
    name: fieldName,
    label: attributes.get("label") || fieldName,
    required: attributes.has("required") && attributes.get("required") !== "false",
    ...(hint && { hint }),
    ...(value && { value }),
  };
  if (name === "select") return { type: name, ...field, options: [] };
  const input_type = inputTypes.find((type) => type === attributes.get("type")) ?? "text";
  return { type: "input", ...field, input_type };
}

/** Closes the innermost open element with the name. Elements opened inside it stay unclosed. */
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
