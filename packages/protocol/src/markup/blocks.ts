/** Separates code blocks from paragraphs, line by line, by the rules of CommonMark. */

import { scanParagraph } from "./inline.ts";
import { matchAt, type Scan } from "./scan.ts";

/** A position on a line. */
interface Cursor {
  /** The index of the next character that is not a space or tab. */
  at: number;
  /** Its column, with tabs expanded. */
  column: number;
  /** The column at which the content of the innermost container begins. */
  base: number;
}

const QUOTE = 0;
/** Deeper nesting is treated as text, to bound the work per line. */
const MAX_CONTAINERS = 32;

const LIST_MARKER = /(?:[-+*]|(\d{1,9})[.)])(?=[ \t\n])/y;
const HEADING = /#{1,6}[ \t\n]/y;
const UNDERLINE = /(?:=+|-+)[ \t]*\n/y;
const FENCE = /`{3,}(?=[^`\n]*\n)|~{3,}/y;
const MAY_BECOME_FENCE = /`{3,}[^`\n]*$/y;
const FENCE_END = /(`{3,}|~{3,})[ \t]*\n/y;

export function scanBlocks(content: string, streaming: boolean): Scan {
  const scan: Scan = {
    content,
    tags: [],
    prose: [],
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
  // A list item may begin with one blank line. A second one ends it.
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

/** Returns how many block quotes and list items around the previous line continue on this line. */
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
  // One space after the `>` belongs to it.
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

/** Whether the line is indented code. Inside of elements indentation is only layout. */
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
