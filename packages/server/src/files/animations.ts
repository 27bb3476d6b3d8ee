import { smallProfile } from "./color-profiles.ts";
import { Damaged, isAscii, KeptParts } from "./picture-parts.ts";
import * as webp from "./webp.ts";

/**
 * The animation in a file, null if it is not a GIF or an animated WebP: the file without comments,
 * metadata and trailing bytes, as parts to write one after another, and a still picture of the first frame.
 */
export function animationIn(bytes: Uint8Array) {
  if (isAscii(bytes, 0, "GIF8")) return { parts: stripGif(bytes), firstFrame: bytes };
  if (!webp.isExtended(bytes) || ((bytes[20] ?? 0) & webp.ANIMATION) === 0) return null;
  const chunks = webp.chunksOf(bytes);
  return { parts: stripWebp(chunks), firstFrame: firstWebpFrame(chunks) };
}

/** The size of the canvas on which the frames of a GIF are shown. Each frame has a size of its own. */
export function gifCanvas(bytes: Uint8Array): { width: number; height: number } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { width: view.getUint16(6, true), height: view.getUint16(8, true) };
}

const GIF_HEADER_BYTES = 13;
const EXTENSION = 0x21;
const IMAGE = 0x2c;
const TRAILER = 0x3b;
const GRAPHIC_CONTROL = 0xf9;
const APPLICATION = 0xff;
/** Says how often the animation repeats. Other applications' blocks may contain anything. */
const LOOPS = ["NETSCAPE2.0", "ANIMEXTS1.0"];

/** Reading blocks is synchronous. A GIF of 25 MiB has some 103,000, of 255 bytes each. */
const MAX_BLOCKS = 130_000;

function stripGif(bytes: Uint8Array): Uint8Array[] {
  const kept = new KeptParts(bytes);
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
  /** Keeps an extension without the blocks that follow its first ones. */
  const keepExtension = (start: number, length: number, end: number) => {
    kept.keep(start, start + length);
    kept.keep(end - 1, end);
  };
  let at = GIF_HEADER_BYTES + colors(byte(10));
  kept.keep(0, at);
  let keepControl = () => {};
  let hasLoop = false;
  for (;;) {
    const start = at;
    const kind = byte(at);
    if (++blocks > MAX_BLOCKS) throw new Damaged("the picture has too many blocks");
    if (kind === TRAILER) {
      kept.keep(start, start + 1);
      return kept.parts();
    }
    if (kind === IMAGE) {
      at = afterBlocks(start + 10 + colors(byte(start + 9)) + 1);
      keepControl();
      keepControl = () => {};
      kept.keep(start, at);
    } else if (kind === EXTENSION) {
      const end = afterBlocks(start + 2);
      at = end;
      if (isControl(bytes, start)) keepControl = () => keepExtension(start, CONTROL_BYTES, end);
      else if (!hasLoop && isLoop(bytes, start)) {
        keepExtension(start, LOOP_BYTES, end);
        hasLoop = true;
      }
    } else throw new Damaged("the picture has an unknown block");
  }
}

/** The lengths of extensions with the blocks that belong to them, without the zero at their end. */
const CONTROL_BYTES = 7;
const LOOP_BYTES = 18;
const LOOP_BLOCK_AT = 14;

/** How the next frame is shown. */
const isControl = (bytes: Uint8Array, at: number) =>
  bytes[at + 1] === GRAPHIC_CONTROL && bytes[at + 2] === 4;

const isLoop = (bytes: Uint8Array, at: number) =>
  bytes[at + 1] === APPLICATION &&
  bytes[at + 2] === 11 &&
  LOOPS.some((each) => isAscii(bytes, at + 3, each)) &&
  bytes[at + LOOP_BLOCK_AT] === 3;

const FRAME_HEADER_BYTES = 16;
/** The content of an ANIM chunk: a colour and the number of repetitions. */
const ANIM_BYTES = 6;
/** A frame has one or two chunks, and others are rare. */
const MAX_FRAME_CHUNKS = 16;

function stripWebp([header, ...others]: readonly webp.Chunk[]): Uint8Array[] {
  const settings = others.find(({ kind }) => kind === "ANIM");
  if (!settings) throw new Damaged("the picture has no settings of its animation");
  const profile = smallProfile(others);
  return webp.fileOf([
    ...webp.extendedHeader(header, webp.ANIMATION | webp.ALPHA | (profile ? webp.PROFILE : 0)),
    ...(profile ? webp.chunkOf("ICCP", [profile.body]) : []),
    ...webp.chunkOf("ANIM", [settings.body.subarray(0, ANIM_BYTES)]),
    ...others.filter(({ kind }) => kind === "ANMF").flatMap(stripFrame),
  ]);
}

function stripFrame({ body }: webp.Chunk): Uint8Array[] {
  const content = frameContent(body).flatMap((chunk) => webp.chunkOf(chunk.kind, [chunk.body]));
  return webp.chunkOf("ANMF", [body.subarray(0, FRAME_HEADER_BYTES), ...content]);
}

/** The chunks of a frame that have its pixels. */
const frameContent = (body: Uint8Array) =>
  webp
    .chunksIn(body.subarray(FRAME_HEADER_BYTES), MAX_FRAME_CHUNKS)
    .filter(({ kind }) => ["ALPH", "VP8 ", "VP8L"].includes(kind));

function firstWebpFrame(chunks: readonly webp.Chunk[]): Uint8Array {
  const frame = chunks.find(({ kind }) => kind === "ANMF");
  if (!frame) throw new Damaged("the picture has no frames");
  const content = frameContent(frame.body);
  const parts = content.flatMap((chunk) => webp.chunkOf(chunk.kind, [chunk.body]));
  // Width and height less one, as three bytes each.
  const size = frame.body.subarray(6, 12);
  const extended = webp.chunkOf("VP8X", [new Uint8Array([webp.ALPHA, 0, 0, 0, ...size])]);
  const hasAlpha = content.some(({ kind }) => kind === "ALPH");
  return Buffer.concat(webp.fileOf(hasAlpha ? [...extended, ...parts] : parts));
}
