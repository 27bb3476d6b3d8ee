/** Thrown for a picture whose structure is damaged. */
export class Damaged extends Error {
  override name = "Damaged";
}

const isAscii = (bytes: Uint8Array, at: number, text: string) =>
  [...text].every((character, place) => bytes[at + place] === character.charCodeAt(0));

export interface Animation {
  /** The file without comments, metadata and trailing bytes, as parts to write one after another. */
  readonly parts: readonly Uint8Array[];
  /** A still picture of the first frame. */
  readonly firstFrame: Uint8Array;
}

/** The animation in a file; null if it is not a GIF or an animated WebP. */
export function animationIn(bytes: Uint8Array): Animation | null {
  if (isAscii(bytes, 0, "GIF8")) return { parts: stripGif(bytes), firstFrame: bytes };
  const isWebp = isAscii(bytes, 0, "RIFF") && isAscii(bytes, 8, "WEBP");
  const isAnimated = isAscii(bytes, 12, "VP8X") && ((bytes[20] ?? 0) & ANIMATION) !== 0;
  if (!isWebp || !isAnimated) return null;
  const chunks = webpChunks(bytes);
  return { parts: stripWebp(chunks), firstFrame: firstWebpFrame(chunks) };
}

const GIF_HEADER = 13;
const EXTENSION = 0x21;
const IMAGE = 0x2c;
const TRAILER = 0x3b;
const GRAPHIC_CONTROL = 0xf9;
const APPLICATION = 0xff;
/** Says how often the animation repeats. Other applications' blocks may contain anything. */
const LOOPS = ["NETSCAPE2.0", "ANIMEXTS1.0"];

/** Reading blocks is synchronous. A GIF of 25 MiB usually has some 100,000. */
const MAX_BLOCKS = 1_000_000;
const MAX_CHUNKS = 10_000;

function stripGif(bytes: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  const byte = (at: number) => {
    const value = bytes[at];
    if (value === undefined) throw new Damaged("the picture ends too early");
    return value;
  };
  const colors = (flags: number) => ((flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1));
  let blocks = 0;
  const afterBlocks = (start: number) => {
    let at = start;
    for (; byte(at) !== 0; at += byte(at) + 1) {
      if (++blocks > MAX_BLOCKS) throw new Damaged("the picture has too many blocks");
    }
    return at + 1;
  };
  let at = GIF_HEADER + colors(byte(10));
  parts.push(bytes.subarray(0, at));
  for (;;) {
    const start = at;
    const kind = byte(at);
    if (++blocks > MAX_BLOCKS) throw new Damaged("the picture has too many blocks");
    if (kind === TRAILER) return [...parts, bytes.subarray(at, at + 1)];
    if (kind === IMAGE) {
      at = afterBlocks(at + 10 + colors(byte(at + 9)) + 1);
      parts.push(bytes.subarray(start, at));
    } else if (kind === EXTENSION) {
      const label = byte(at + 1);
      at = afterBlocks(at + 2);
      const isLoop = label === APPLICATION && LOOPS.some((each) => isAscii(bytes, start + 3, each));
      if (label === GRAPHIC_CONTROL || isLoop) parts.push(bytes.subarray(start, at));
    } else throw new Damaged("the picture has an unknown block");
  }
}

const RIFF_HEADER = 12;
const CHUNK_HEADER = 8;
const ANIMATION = 0x02;
const ALPHA = 0x10;
const METADATA_FLAGS = 0x08 | 0x04;
const FRAME_HEADER = 16;

interface Chunk {
  readonly kind: string;
  /** With its header and padding. */
  readonly bytes: Uint8Array;
  readonly body: Uint8Array;
}

const webpChunks = (bytes: Uint8Array) => {
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true);
  return chunksIn(bytes.subarray(RIFF_HEADER, CHUNK_HEADER + size));
};

function chunksIn(bytes: Uint8Array): Chunk[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const chunks: Chunk[] = [];
  for (let at = 0; at + CHUNK_HEADER <= bytes.length; ) {
    const kind = Buffer.from(bytes.subarray(at, at + 4)).toString("latin1");
    const start = at + CHUNK_HEADER;
    const end = start + view.getUint32(at + 4, true);
    if (end > bytes.length) throw new Damaged("the picture ends too early");
    const next = end + (end % 2 === start % 2 ? 0 : 1);
    if (chunks.length === MAX_CHUNKS) throw new Damaged("the picture has too many chunks");
    chunks.push({ kind, bytes: bytes.subarray(at, next), body: bytes.subarray(start, end) });
    at = next;
  }
  return chunks;
}

function stripWebp(chunks: readonly Chunk[]): Uint8Array[] {
  const [header, ...others] = chunks;
  if (header?.kind !== "VP8X") throw new Damaged("the picture has no header");
  const kept = others.filter(({ kind }) => ["ICCP", "ANIM", "ANMF"].includes(kind));
  const flags = header.bytes.slice();
  flags[CHUNK_HEADER] = (flags[CHUNK_HEADER] ?? 0) & ~METADATA_FLAGS;
  return webpOf([flags, ...kept.map(({ bytes }) => bytes)]);
}

function firstWebpFrame(chunks: readonly Chunk[]): Uint8Array {
  const frame = chunks.find(({ kind }) => kind === "ANMF");
  if (!frame) throw new Damaged("the picture has no frames");
  const content = chunksIn(frame.body.subarray(FRAME_HEADER)).filter(({ kind }) =>
    ["ALPH", "VP8 ", "VP8L"].includes(kind),
  );
  const parts = content.map(({ bytes }) => bytes);
  // Width and height less one, as three bytes each.
  const size = frame.body.subarray(6, 12);
  const extended = [...Buffer.from("VP8X"), 10, 0, 0, 0, ALPHA, 0, 0, 0, ...size];
  const hasAlpha = content.some(({ kind }) => kind === "ALPH");
  return Buffer.concat(webpOf(hasAlpha ? [new Uint8Array(extended), ...parts] : parts));
}

function webpOf(chunks: readonly Uint8Array[]): Uint8Array[] {
  const header = Buffer.from("RIFF....WEBP");
  header.writeUInt32LE(
    chunks.reduce((sum, chunk) => sum + chunk.length, 4),
    4,
  );
  return [header, ...chunks];
}
