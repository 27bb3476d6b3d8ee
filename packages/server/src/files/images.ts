import { open } from "node:fs/promises";
import { Failure } from "../rules/failure.ts";
import { animationIn, Damaged } from "./animations.ts";

/** Types that are processed as pictures. */
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
const PREVIEW_PIXELS = 640;
const PREVIEW_QUALITY = 75;
/** The longer side of pictures of accounts and groups. */
const PROFILE_PIXELS = 512;
/** The shorter side of their previews: enough for a square of 64 pixels on a dense screen. */
const PROFILE_PREVIEW_PIXELS = 192;

export interface Picture {
  readonly type: string;
  readonly width: number;
  readonly height: number;
  /** A blurred data URL. */
  readonly placeholder: string;
}

export interface PictureFiles {
  /** Where to write the picture without its metadata. */
  readonly cleaned: string;
  readonly preview: string;
  readonly maxPixels: number;
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
 * and a preview of it. Decoding and encoding happen on other threads. Animated pictures keep their
 * frames: they are copied without the blocks that are not part of the picture.
 */
export async function cleanPicture(
  path: string,
  { cleaned, preview, maxPixels }: PictureFiles,
): Promise<Picture> {
  try {
    const { width, height, format } = await new Bun.Image(path, { maxPixels }).metadata();
    const animation = format === "gif" || format === "webp" ? animationIn(Bun.mmap(path)) : null;
    if (animation) await writeParts(cleaned, animation.parts);
    else await encoded(new Bun.Image(path, { maxPixels }), format).write(cleaned);
    const still = animation?.firstFrame ?? cleaned;
    await scaled(new Bun.Image(still, { maxPixels }), PREVIEW_PIXELS)
      .webp({ quality: PREVIEW_QUALITY })
      .write(preview);
    const placeholder = await new Bun.Image(still, { maxPixels }).placeholder();
    const type = format === "bmp" ? "image/png" : `image/${format}`;
    return { type, width, height, placeholder };
  } catch (error) {
    throw problemOf(error);
  }
}

/**
 * Writes a picture of an account or a group: small, without metadata, and always a still. The preview
 * fills a square whose sides are cut off.
 */
export async function cleanProfilePicture(
  path: string,
  { cleaned, preview, maxPixels }: PictureFiles,
): Promise<Picture> {
  try {
    const { format } = await new Bun.Image(path, { maxPixels }).metadata();
    const animation = format === "gif" || format === "webp" ? animationIn(Bun.mmap(path)) : null;
    const still = new Bun.Image(animation?.firstFrame ?? path, { maxPixels });
    await scaled(still, PROFILE_PIXELS).webp({ quality: WEBP_QUALITY }).write(cleaned);
    const { width, height } = await new Bun.Image(cleaned).metadata();
    const long = PROFILE_PREVIEW_PIXELS * (Math.max(width, height) / Math.min(width, height));
    await scaled(new Bun.Image(cleaned), Math.ceil(long))
      .webp({ quality: PREVIEW_QUALITY })
      .write(preview);
    const placeholder = await new Bun.Image(cleaned).placeholder();
    return { type: "image/webp", width, height, placeholder };
  } catch (error) {
    throw problemOf(error);
  }
}

const scaled = (image: Bun.Image, pixels: number) =>
  image.resize(pixels, pixels, { fit: "inside", withoutEnlargement: true });

/** What is thrown for a file that should be a picture of an account or a group, and is none. */
export const notAPicture = () => unsupported("it must be a JPEG, PNG, WebP or GIF picture");

function encoded(image: Bun.Image, format: Bun.Image.Format): Bun.Image {
  if (format === "jpeg") return image.jpeg({ quality: JPEG_QUALITY });
  return format === "webp" ? image.webp({ quality: WEBP_QUALITY }) : image.png();
}

async function writeParts(path: string, parts: readonly Uint8Array[]): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  for (const part of parts) await file.writeFile(part);
}

const unsupported = (why: string) =>
  new Failure("unsupported_media_type", `unsupported media type: ${why}`);

function problemOf(error: unknown): unknown {
  const { code } = error as { code?: string };
  if (code === "ERR_IMAGE_TOO_MANY_PIXELS") {
    return new Failure("payload_too_large", "payload too large: the picture has too many pixels");
  }
  const isDamaged = error instanceof Damaged || code?.startsWith("ERR_IMAGE_");
  return isDamaged ? unsupported("the picture is damaged") : error;
}
