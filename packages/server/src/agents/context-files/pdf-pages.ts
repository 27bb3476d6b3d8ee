import { promisify } from "node:util";
import { inflate } from "node:zlib";

/** A document with more compressed objects is counted by those that were read. */
const MAX_OBJECT_STREAMS = 200;
const MAX_INFLATED_BYTES = 4 << 20;
/** For a document whose pages are not found. */
const BYTES_PER_PAGE = 50_000;

const inflated = promisify(inflate);

/** The value of `/Encrypt` in the trailer of an encrypted document: a reference or a dictionary. */
const ENCRYPTION = /^\s*(\d+\s+\d+\s+R|<<)/;
const LONGEST_REFERENCE = 32;

/** Providers do not accept encrypted documents. */
export function isEncrypted(pdf: Buffer): boolean {
  for (const at of occurrences(pdf, "/Encrypt")) {
    const start = at + "/Encrypt".length;
    if (ENCRYPTION.test(pdf.toString("latin1", start, start + LONGEST_REFERENCE))) return true;
  }
  return false;
}

/**
 * Counts the pages of a PDF by the objects that describe them, also those in compressed streams.
 * Estimates them by the size if there are none.
 */
export async function countPages(pdf: Buffer): Promise<number> {
  let pages = countPageObjects(pdf);
  let streams = 0;
  for (const stream of objectStreams(pdf)) {
    if (++streams > MAX_OBJECT_STREAMS) break;
    pages += await inflated(stream, { maxOutputLength: MAX_INFLATED_BYTES }).then(
      countPageObjects,
      () => 0,
    );
  }
  return pages > 0 ? pages : Math.ceil(pdf.length / BYTES_PER_PAGE);
}

const PAGE = /\/Type\s*\/Page$/;
const LONGEST_PAGE_MATCH = 16;

/** The objects of the type `/Page`, which is also the beginning of other names, such as `/Pages`. */
function countPageObjects(bytes: Buffer): number {
  let count = 0;
  for (const at of occurrences(bytes, "/Page")) {
    const end = at + "/Page".length;
    const before = bytes.toString("latin1", Math.max(0, end - LONGEST_PAGE_MATCH), end);
    const isWhole = !/[A-Za-z0-9]/.test(bytes.toString("latin1", end, end + 1));
    if (isWhole && PAGE.test(before)) count++;
  }
  return count;
}

/** The contents of the compressed streams of objects. */
function* objectStreams(pdf: Buffer): Iterable<Buffer> {
  for (const at of occurrences(pdf, "/ObjStm")) {
    const start = pdf.indexOf("stream", at);
    const end = pdf.indexOf("endstream", start);
    if (start < 0 || end < 0) return;
    const lineBreak = pdf[start + "stream".length] === 0x0d ? 2 : 1;
    yield pdf.subarray(start + "stream".length + lineBreak, end);
  }
}

function* occurrences(bytes: Buffer, text: string): Iterable<number> {
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) yield at;
}
