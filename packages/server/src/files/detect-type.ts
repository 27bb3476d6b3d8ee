import { open } from "node:fs/promises";
import { decodeText, plainTextType } from "./text-encoding.ts";

/** The first bytes, which show the type. */
const HEAD_BYTES = 64 * 1024;

const BINARY = "application/octet-stream";

/**
 * The type of a file by its bytes, whatever its name says. Text is text even if it begins with the
 * letters of another format, such as «BM» or «ID3»: those formats have bytes that no text has.
 */
export async function detectType(path: string): Promise<string> {
  const head = await readHead(path);
  const decoded = decodeText(head, head.length < HEAD_BYTES);
  if (!decoded) return (await binaryType(head)) ?? BINARY;
  const { text, encoding } = decoded;
  if (text.startsWith("%PDF-")) return "application/pdf";
  return markupType(text) ?? plainTextType(encoding);
}

/** The library is loaded with the first such file, so that the server starts without it. */
async function binaryType(head: Uint8Array): Promise<string | undefined> {
  const { fileTypeFromBuffer } = await import("file-type");
  return (await fileTypeFromBuffer(head))?.mime;
}

async function readHead(path: string): Promise<Uint8Array> {
  await using file = await open(path);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
  return buffer.subarray(0, bytesRead);
}

/** How much of a text shows which markup it is. */
const MARKUP_CHARACTERS = 4096;
const HTML = /<(?:!doctype html|html|head|body|script|iframe)\b/;

/** Recognises markup in which browsers would run scripts. */
function markupType(text: string): string | null {
  const start = text.trimStart().slice(0, MARKUP_CHARACTERS).toLowerCase();
  if (!start.startsWith("<")) return null;
  if (start.includes("<svg")) return "image/svg+xml";
  if (HTML.test(start)) return "text/html";
  return start.startsWith("<?xml") ? "application/xml" : null;
}
