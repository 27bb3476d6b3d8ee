import { inflateSync } from "node:zlib";
import { Damaged, isAscii, KeptParts } from "./picture-parts.ts";
import * as webp from "./webp.ts";

/** The usual profiles (sRGB, Display P3, Adobe RGB) are smaller. Larger ones may contain anything. */
const MAX_PROFILE_BYTES = 4096;
/** Reading chunks is synchronous. */
const MAX_CHUNKS = 100_000;

/**
 * A JPEG, PNG or WebP file without its colour profile, as parts to write one after another; null if it
 * has none, or a small one. `Bun.Image` copies the profile of a picture into each version of it, and has
 * no way to leave it out.
 */
export function withoutLargeProfile(bytes: Uint8Array): Uint8Array[] | null {
  if (isAscii(bytes, 0, "\u0089PNG")) return pngWithoutProfile(bytes);
  if (isAscii(bytes, 0, "\u00ff\u00d8")) return jpegWithoutProfile(bytes);
  return webp.isExtended(bytes) ? webpWithoutProfile(bytes) : null;
}

/** The profile of a WebP if it is small. */
export const smallProfile = (chunks: readonly webp.Chunk[]): webp.Chunk | undefined =>
  chunks.find(({ kind, body }) => kind === "ICCP" && body.length <= MAX_PROFILE_BYTES);

const PNG_SIGNATURE_BYTES = 8;
/** A chunk without its content: length, kind and checksum. */
const PNG_CHUNK_BYTES = 12;

function pngWithoutProfile(bytes: Uint8Array): Uint8Array[] | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const kept = new KeptParts(bytes);
  kept.keep(0, PNG_SIGNATURE_BYTES);
  let profiles = 0;
  let isLarge = false;
  let at = PNG_SIGNATURE_BYTES;
  for (let chunks = 0; at + PNG_CHUNK_BYTES <= bytes.length; chunks++) {
    if (chunks === MAX_CHUNKS) throw new Damaged("the picture has too many chunks");
    const end = at + PNG_CHUNK_BYTES + view.getUint32(at);
    if (end > bytes.length) throw new Damaged("the picture ends too early");
    if (isAscii(bytes, at + 4, "iCCP")) {
      const isSmall = ++profiles === 1 && isSmallPngProfile(bytes.subarray(at + 8, end - 4));
      if (isSmall) kept.keep(at, end);
      else isLarge = true;
    } else kept.keep(at, end);
    if (isAscii(bytes, at + 4, "IEND")) break;
    at = end;
  }
  return isLarge ? kept.parts() : null;
}

/** A profile has a name, a zero, the number of the compression, and compressed bytes. */
function isSmallPngProfile(body: Uint8Array): boolean {
  if (body.length > 2 * MAX_PROFILE_BYTES) return false;
  try {
    inflateSync(body.subarray(body.indexOf(0) + 2), { maxOutputLength: MAX_PROFILE_BYTES });
    return true;
  } catch {
    // It is larger, or damaged.
    return false;
  }
}

const MARKER = 0xff;
const APP2 = 0xe2;
const START_OF_SCAN = 0xda;
const END_OF_IMAGE = 0xd9;
/** Markers without a length. */
const isBare = (marker: number) => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7);
const PROFILE_NAME = "ICC_PROFILE\0";

function jpegWithoutProfile(bytes: Uint8Array): Uint8Array[] | null {
  const kept = new KeptParts(bytes);
  let profileBytes = 0;
  let start = 0;
  for (const { marker, at, end } of jpegSegments(bytes)) {
    if (marker !== APP2 || !isAscii(bytes, at + 4, PROFILE_NAME)) continue;
    profileBytes += end - at;
    kept.keep(start, at);
    start = end;
  }
  kept.keep(start, bytes.length);
  return profileBytes > MAX_PROFILE_BYTES ? kept.parts() : null;
}

/** The segments before the first scan, with their markers. As decoders do, it skips bytes between them. */
function* jpegSegments(bytes: Uint8Array) {
  let at = 2;
  for (let segments = 0; ; segments++) {
    if (segments === MAX_CHUNKS) throw new Damaged("the picture has too many segments");
    at = bytes.indexOf(MARKER, at);
    const marker = at === -1 ? undefined : bytes[at + 1];
    if (marker === undefined || marker === START_OF_SCAN || marker === END_OF_IMAGE) return;
    // A marker can follow any number of these bytes, and with a zero it is none.
    if (marker === MARKER) at += 1;
    else if (marker === 0 || isBare(marker)) at += 2;
    else {
      const end = at + 2 + (((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0));
      if (end < at + 4 || end > bytes.length) throw new Damaged("the picture ends too early");
      yield { marker, at, end };
      at = end;
    }
  }
}

const ALL_BUT_PROFILE = webp.ALPHA | 0x08 | 0x04 | 0x02;

function webpWithoutProfile(bytes: Uint8Array): Uint8Array[] | null {
  const [header, ...others] = webp.chunksOf(bytes);
  const profiles = others.filter(({ kind }) => kind === "ICCP");
  if (profiles.length === (smallProfile(profiles) ? 1 : 0)) return null;
  const kept = others.filter(({ kind }) => kind !== "ICCP").map((chunk) => chunk.bytes);
  return webp.fileOf([...webp.extendedHeader(header, ALL_BUT_PROFILE), ...kept]);
}
