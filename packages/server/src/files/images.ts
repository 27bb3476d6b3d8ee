import { chmod, open, rm, stat } from "node:fs/promises";
import { Failure } from "../rules/failure.ts";
import { animationIn, gifCanvas } from "./animations.ts";
import { withoutLargeProfile } from "./color-profiles.ts";
import { Damaged } from "./picture-parts.ts";
import * as webp from "./webp.ts";

const FORMATS: Record<string, Bun.Image.Format> = {
  "image/jpeg": "jpeg",
  "image/png": "png",
  "image/apng": "png",
  "image/webp": "webp",
  "image/gif": "gif",
  "image/bmp": "bmp",
};

/** Pictures that cannot be processed here: their metadata could not be removed. */
const UNSUPPORTED = /^image\/(?!svg\+xml$)/;

const JPEG_QUALITY = 90;
const WEBP_QUALITY = 90;
/** Encoding a larger WebP without loss would hold up other pictures for many seconds. */
const MAX_LOSSLESS_PIXELS = 16_000_000;
const PREVIEW_PIXELS = 640;
const PREVIEW_QUALITY = 75;
const SMALL_PREVIEW_QUALITY = 40;
const MAX_PREVIEW_BYTES = 1_000_000;
/** A picture of one pixel by millions takes minutes to encode. WebP has at most this many, too. */
export const MAX_SIDE_PIXELS = 16_384;
const OWNER_ONLY = 0o600;
const BATCH_BYTES = 1 << 20;
/** The longer side of pictures of accounts and groups. */
const PROFILE_PIXELS = 512;
/** The shorter side of their previews: enough for a square of 64 pixels on a dense screen. */
const PROFILE_PREVIEW_PIXELS = 192;

export interface PictureFiles {
  /** Where to write the picture without its metadata. */
  readonly cleaned: string;
  readonly preview: string;
  readonly maxPixels: number;
  /** The limit of the picture without its metadata: encoding it again can multiply its bytes. */
  readonly maxBytes: number;
}

/** Whether a file of this type is a picture. Throws for pictures that cannot be processed. */
export function isPicture(type: string): boolean {
  if (type in FORMATS) return true;
  if (UNSUPPORTED.test(type)) {
    throw unsupported(
      `pictures of the type ${type} are not supported; send JPEG, PNG, WebP or GIF`,
    );
  }
  return false;
}

/**
 * Writes a picture again without metadata (EXIF, GPS, comments) and without anything behind its end,
 * and a preview of it. The placeholder is a blurred data URL. Decoding and encoding happen on other
 * threads. Animated pictures keep their frames: they are copied without the blocks that are not part of
 * the picture.
 */
export async function cleanPicture(path: string, files: PictureFiles) {
  const { cleaned, preview, maxPixels } = files;
  return decodable(path, files, async (source) => {
    const size = await sizeOf(source, maxPixels);
    const { width, height, format } = size;
    const animation = animationOf(source, format);
    if (animation) await writeParts(cleaned, animation.parts);
    else await write(encoded(source, files, size), cleaned);
    await checkBytes(cleaned, files.maxBytes);
    const still = animation?.firstFrame ?? cleaned;
    const small = () => scaled(new Bun.Image(still, { maxPixels }), PREVIEW_PIXELS);
    await writePreview(small, preview);
    const placeholder = await new Bun.Image(still, { maxPixels }).placeholder();
    const type = format === "bmp" ? "image/png" : `image/${format}`;
    return { type, width, height, placeholder };
  });
}

/** Writes a picture of an account or a group: a small still without metadata, and a square preview. */
export async function cleanProfilePicture(path: string, files: PictureFiles) {
  const { cleaned, preview, maxPixels } = files;
  return decodable(path, files, async (source) => {
    const { format } = await sizeOf(source, maxPixels);
    const still = new Bun.Image(animationOf(source, format)?.firstFrame ?? source, { maxPixels });
    await write(scaled(still, PROFILE_PIXELS).webp({ quality: WEBP_QUALITY }), cleaned);
    await checkBytes(cleaned, files.maxBytes);
    const { width, height } = await new Bun.Image(cleaned).metadata();
    const long = PROFILE_PREVIEW_PIXELS * (Math.max(width, height) / Math.min(width, height));
    await writePreview(() => scaled(new Bun.Image(cleaned), Math.ceil(long)), preview);
    const placeholder = await new Bun.Image(cleaned).placeholder();
    return { type: "image/webp", width, height, placeholder };
  });
}

/** The number of pixels to decode. Throws for a picture that is damaged or too large. */
export const pixelsOf = (path: string, files: PictureFiles): Promise<number> =>
  decodable(path, files, async (source) => {
    const { width, height } = await sizeOf(source, files.maxPixels);
    return width * height;
  });

/** Works on a picture without a large colour profile: on the file itself, or on a copy. */
async function decodable<Result>(
  path: string,
  { cleaned }: PictureFiles,
  work: (source: string) => Promise<Result>,
): Promise<Result> {
  const copy = `${cleaned}.source`;
  try {
    const parts = withoutLargeProfile(Bun.mmap(path));
    if (parts) await writeParts(copy, parts);
    return await work(parts ? copy : path);
  } catch (error) {
    throw problemOf(error);
  } finally {
    await rm(copy, { force: true });
  }
}

/** The format of a picture, and the size at which browsers show it. Throws if it is too large. */
async function sizeOf(path: string, maxPixels: number): Promise<Bun.Image.Metadata> {
  const { format, ...frame } = await new Bun.Image(path, { maxPixels }).metadata();
  // Of a GIF the decoder sees only the first frame. Browsers allocate the canvas.
  const canvas = format === "gif" ? gifCanvas(Bun.mmap(path)) : frame;
  const width = Math.max(frame.width, canvas.width);
  const height = Math.max(frame.height, canvas.height);
  if (Math.max(width, height) > MAX_SIDE_PIXELS) {
    throw tooLarge(`a picture has at most ${MAX_SIDE_PIXELS} pixels on its longer side`);
  }
  if (width * height > maxPixels) throw tooManyPixels();
  return { format, width, height };
}

const animationOf = (path: string, format: Bun.Image.Format) =>
  format === "gif" || format === "webp" ? animationIn(Bun.mmap(path)) : null;

async function write(image: Bun.Image, path: string): Promise<void> {
  await image.write(path);
  await chmod(path, OWNER_ONLY);
}

async function checkBytes(path: string, maxBytes: number): Promise<void> {
  const { size } = await stat(path);
  if (size > maxBytes) throw tooLarge(`encoded again, the picture has more than ${maxBytes} bytes`);
}

async function writePreview(image: () => Bun.Image, path: string): Promise<void> {
  await write(image().webp({ quality: PREVIEW_QUALITY }), path);
  if ((await stat(path)).size <= MAX_PREVIEW_BYTES) return;
  await write(image().webp({ quality: SMALL_PREVIEW_QUALITY }), path);
  await checkBytes(path, MAX_PREVIEW_BYTES);
}

const scaled = (image: Bun.Image, pixels: number) =>
  image.resize(pixels, pixels, { fit: "inside", withoutEnlargement: true });

/** What is thrown for a file that should be a picture of an account or a group, and is none. */
export const notAPicture = () => unsupported("it must be a JPEG, PNG, WebP or GIF picture");

function encoded(
  path: string,
  { maxPixels }: PictureFiles,
  { format, width, height }: Bun.Image.Metadata,
): Bun.Image {
  const image = new Bun.Image(path, { maxPixels });
  if (format === "jpeg") return image.jpeg({ quality: JPEG_QUALITY });
  if (format !== "webp") return image.png();
  const lossless = width * height <= MAX_LOSSLESS_PIXELS && webp.isLossless(Bun.mmap(path));
  return image.webp(lossless ? { lossless } : { quality: WEBP_QUALITY });
}

async function writeParts(path: string, parts: readonly Uint8Array[]): Promise<void> {
  await using file = await open(path, "wx", OWNER_ONLY);
  for (const batch of batches(parts)) await file.writeFile(Buffer.concat(batch));
}

/** Joins small parts, so that a file of many is written by few calls. */
function* batches(parts: readonly Uint8Array[]): Generator<Uint8Array[]> {
  let batch: Uint8Array[] = [];
  let bytes = 0;
  for (const part of parts) {
    for (let at = 0; at < part.length; at += BATCH_BYTES) {
      const piece = part.subarray(at, at + BATCH_BYTES);
      batch.push(piece);
      bytes += piece.length;
      if (bytes < BATCH_BYTES) continue;
      yield batch;
      batch = [];
      bytes = 0;
    }
  }
  yield batch;
}

const tooLarge = (why: string) => new Failure("payload_too_large", `payload too large: ${why}`);

const tooManyPixels = () => tooLarge("the picture has too many pixels");

const unsupported = (why: string) =>
  new Failure("unsupported_media_type", `unsupported media type: ${why}`);

function problemOf(error: unknown): unknown {
  const { code } = error as { code?: string };
  if (code === "ERR_IMAGE_TOO_MANY_PIXELS") return tooManyPixels();
  const isDamaged = error instanceof Damaged || code?.startsWith("ERR_IMAGE_");
  return isDamaged ? unsupported("the picture is damaged") : error;
}
