/** The tags in a paragraph that no code span covers. */

import { inputTypes, isContainer, type Piece, type TagName, tagNames } from "./elements.ts";
import { matchAt, type Scan, type Tag } from "./scan.ts";
import { unescapeEntities } from "./text.ts";

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
