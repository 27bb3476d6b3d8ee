import { Damaged, isAscii } from "./picture-parts.ts";

const RIFF_HEADER_BYTES = 12;
const CHUNK_HEADER_BYTES = 8;
const MAX_CHUNKS = 10_000;
const EXTENDED_HEADER_BYTES = 10;
const SIZE_AT = 4;

/** Flags of the extended header. */
export const ANIMATION = 0x02;
export const ALPHA = 0x10;
export const PROFILE = 0x20;

export interface Chunk {
  readonly kind: string;
  /** With its header and padding. */
  readonly bytes: Uint8Array;
  readonly body: Uint8Array;
}

export const chunksOf = (bytes: Uint8Array) => {
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true);
  return chunksIn(bytes.subarray(RIFF_HEADER_BYTES, CHUNK_HEADER_BYTES + size), MAX_CHUNKS);
};

/** Whether a file is a WebP, and has an extended header. */
export const isExtended = (bytes: Uint8Array) =>
  isAscii(bytes, 0, "RIFF") && isAscii(bytes, 8, "WEBPVP8X");

/** Whether a file is a WebP, and has a still picture that is lossless. */
export const isLossless = (bytes: Uint8Array) =>
  isAscii(bytes, RIFF_HEADER_BYTES, "VP8L") ||
  (isAscii(bytes, RIFF_HEADER_BYTES, "VP8X") &&
    chunksOf(bytes).some(({ kind }) => kind === "VP8L"));

export function chunksIn(bytes: Uint8Array, maxChunks: number): Chunk[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const chunks: Chunk[] = [];
  for (let at = 0; at + CHUNK_HEADER_BYTES <= bytes.length; ) {
    const kind = Buffer.from(bytes.subarray(at, at + 4)).toString("latin1");
    const start = at + CHUNK_HEADER_BYTES;
    const end = start + view.getUint32(at + 4, true);
    if (end > bytes.length) throw new Damaged("the picture ends too early");
    const next = end + (end % 2 === start % 2 ? 0 : 1);
    if (chunks.length === maxChunks) throw new Damaged("the picture has too many chunks");
    chunks.push({ kind, bytes: bytes.subarray(at, next), body: bytes.subarray(start, end) });
    at = next;
  }
  return chunks;
}

/** A chunk with this content, as parts. */
export function chunkOf(kind: string, content: readonly Uint8Array[]): Uint8Array[] {
  const header = Buffer.from(`${kind}....`, "latin1");
  const size = sizeOf(content);
  header.writeUInt32LE(size, 4);
  return [header, ...content, new Uint8Array(size % 2)];
}

/** A file of these chunks, as parts. */
export function fileOf(chunks: readonly Uint8Array[]): Uint8Array[] {
  const header = Buffer.from("RIFF....WEBP");
  header.writeUInt32LE(sizeOf(chunks) + 4, 4);
  return [header, ...chunks];
}

/** The extended header that a file begins with, with only these of its flags. */
export function extendedHeader(header: Chunk | undefined, flags: number): Uint8Array[] {
  if (header?.kind !== "VP8X" || header.body.length < EXTENDED_HEADER_BYTES) {
    throw new Damaged("the picture has no header");
  }
  const kept = [(header.body[0] ?? 0) & flags, 0, 0, 0];
  const size = header.body.subarray(SIZE_AT, EXTENDED_HEADER_BYTES);
  return chunkOf("VP8X", [new Uint8Array([...kept, ...size])]);
}

const sizeOf = (parts: readonly Uint8Array[]) => parts.reduce((sum, part) => sum + part.length, 0);
