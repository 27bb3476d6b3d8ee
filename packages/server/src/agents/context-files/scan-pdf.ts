import { inflateSync } from "node:zlib";

/** Documents with more pages are not shown. Anthropic accepts no more. */
export const MAX_PAGES = 100;

/** What the thread finds out about a document. */
export interface PdfFacts {
  /** Providers do not accept encrypted documents. */
  readonly encrypted: boolean;
  /** More than `MAX_PAGES` stands for any larger number, and for pages that cannot be counted. */
  readonly pages: number;
}

const UNCOUNTABLE = MAX_PAGES + 1;
const MAX_OBJECT_STREAMS = 1000;
/** Of all object streams together. */
const MAX_INFLATED_BYTES = 16 << 20;
/** For a document whose pages are not found. */
const BYTES_PER_UNKNOWN_PAGE = 50_000;
/** A page of a scanned document is rarely larger. */
const MAX_BYTES_PER_PAGE = 500_000;

/** Any character of a name can be written as `#` and its code. The name ends after it. */
const name = (text: string) =>
  `/${[...text].map(nameCharacter).join("")}(?![^\\0\\s()<>\\[\\]{}/%])`;

function nameCharacter(character: string): string {
  const code = character.charCodeAt(0).toString(16);
  return `(?:${character}|#(?:${code}|${code.toUpperCase()}))`;
}

/** White space and comments. Bounded, because each occurrence of a name is followed by a search. */
const GAP = "(?:[\\0\\s]|%[^\\r\\n]{0,99}[\\r\\n]){0,64}";
const REFERENCE = `\\d{1,10}${GAP}\\d{1,5}${GAP}R\\b`;

/** In the trailer of an encrypted document. */
const ENCRYPTION = new RegExp(`${name("Encrypt")}${GAP}(?:${REFERENCE}|<<)`);
const PAGE = new RegExp(`${name("Type")}${GAP}${name("Page")}`, "g");
const COUNT = new RegExp(`${name("Count")}${GAP}\\+?(\\d+)`, "g");
/** Valid, but no program writes types and counts as references: it would hide them from the search. */
const HIDDEN = new RegExp(`(?:${name("Type")}|${name("Count")})${GAP}${REFERENCE}`);
const OBJECT_STREAM = new RegExp(name("ObjStm"), "g");
const KIDS = new RegExp(name("Kids"));
const FIRST = new RegExp(name("First"));
/** An object stream begins with the numbers and the places of its objects. */
const OBJECT_NUMBERS = /^\s*\d+\s+\d+\s/;

/**
 * Counts the pages of a PDF without following its references, so that the order and the number of its
 * objects do not matter. Aims high rather than low: the count decides what a request may cost. Takes
 * long for some documents, so it belongs on a thread with a deadline.
 *
 * No library: pdf.js believes a tree of 500 pages that says it has one, and takes 800 MB for a stream of
 * 1 MB that inflates to a lot.
 */
export function scanPdf(pdf: Buffer): PdfFacts {
  const text = pdf.toString("latin1");
  if (ENCRYPTION.test(text)) return { encrypted: true, pages: UNCOUNTABLE };
  return { encrypted: false, pages: Math.min(countPages(pdf, text), UNCOUNTABLE) };
}

function countPages(pdf: Buffer, text: string): number {
  let objects = 0;
  let counted = 0;
  for (const part of objectTexts(pdf, text)) {
    if (part === null || HIDDEN.test(part)) return UNCOUNTABLE;
    objects += countPageObjects(part);
    counted = Math.max(counted, largestCount(part));
    if (Math.max(objects, counted) > MAX_PAGES) return UNCOUNTABLE;
  }
  const found = Math.max(objects, counted);
  const bytesPerPage = found === 0 ? BYTES_PER_UNKNOWN_PAGE : MAX_BYTES_PER_PAGE;
  return Math.max(found, Math.ceil(pdf.length / bytesPerPage));
}

/** The document, and the contents of its object streams; null for one that cannot be read. */
function* objectTexts(pdf: Buffer, text: string): Iterable<string | null> {
  yield text;
  let streams = 0;
  let bytesLeft = MAX_INFLATED_BYTES;
  for (const { index } of text.matchAll(OBJECT_STREAM)) {
    const start = text.indexOf("stream", index);
    if (start < 0) return;
    const objects = ++streams > MAX_OBJECT_STREAMS ? null : inflateObjects(pdf, start, bytesLeft);
    yield objects;
    bytesLeft -= objects?.length ?? 0;
  }
}

/** The content of the object stream whose keyword `stream` is at this place. */
function inflateObjects(pdf: Buffer, keyword: number, maxBytes: number): string | null {
  const lineBreak = pdf[keyword + "stream".length] === 0x0d ? 2 : 1;
  const start = keyword + "stream".length + lineBreak;
  const end = pdf.indexOf("endstream", start);
  if (end < 0 || maxBytes <= 0) return null;
  try {
    const objects = inflateSync(pdf.subarray(start, end), { maxOutputLength: maxBytes });
    const text = objects.toString("latin1");
    return OBJECT_NUMBERS.test(text) ? text : null;
  } catch {
    // Too large, damaged, or encoded in another way.
    return null;
  }
}

function countPageObjects(text: string): number {
  let count = 0;
  for (const _ of text.matchAll(PAGE)) if (++count > MAX_PAGES) break;
  return count;
}

function largestCount(text: string): number {
  let largest = 0;
  for (const match of text.matchAll(COUNT)) {
    const count = Number(match[1]);
    if (count > largest && !isOutline(text, match.index)) largest = count;
    if (largest > MAX_PAGES) break;
  }
  return largest;
}

const MAX_OUTLINE_CHARACTERS = 300;
/** The beginning of a dictionary that is not in a comment, with its whole line. */
const DICTIONARY_START = /[\r\n][^%\r\n]*<<$/;

/**
 * Whether the count at this place is one of bookmarks: its dictionary has a first bookmark, and no
 * pages. A dictionary with strings, comments or other dictionaries is taken for one of pages, because
 * its end is not certain.
 */
function isOutline(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - MAX_OUTLINE_CHARACTERS), at);
  const after = text.slice(at, at + MAX_OUTLINE_CHARACTERS);
  const start = before.lastIndexOf("<<") + 2;
  const end = after.indexOf(">>");
  if (end < 0 || !DICTIONARY_START.test(before.slice(0, start))) return false;
  const dictionary = before.slice(start) + after.slice(0, end);
  return !/[()%<>]/.test(dictionary) && FIRST.test(dictionary) && !KIDS.test(dictionary);
}
