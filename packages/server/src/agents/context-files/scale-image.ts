import { animationIn } from "../../files/animations.ts";
import { MAX_SIDE_PIXELS } from "../../files/images.ts";
import { Damaged } from "../../files/picture-parts.ts";
import type { ImagePart } from "../../rules/model-content.ts";
import { MAX_IMAGE_SIDE } from "../../rules/token-estimate.ts";

/** Providers reject larger pictures: 5 MB in base64, and 32 MB for the whole request. */
export const MAX_IMAGE_BYTES = 2 << 20;
const QUALITY = 85;
const SMALL_QUALITY = 70;

/**
 * Prepares a stored picture for a model: at most `MAX_IMAGE_SIDE` pixels on its longer side, never
 * enlarged, and the first frame of an animation. Decoding and encoding happen on another thread.
 * Throws an error with an `ERR_IMAGE_` code, or `Damaged`, if the picture is damaged.
 */
export async function scaleImage(bytes: Uint8Array, maxPixels: number): Promise<ImagePart> {
  const still = isGif(bytes) ? bytes : (animationIn(bytes)?.firstFrame ?? bytes);
  const { width, height, format } = await new Bun.Image(still, { maxPixels }).metadata();
  if (Math.max(width, height) > MAX_SIDE_PIXELS) throw new Damaged("the picture is too long");
  const isSmall = Math.max(width, height) <= MAX_IMAGE_SIDE && still.length <= MAX_IMAGE_BYTES;
  if (isSmall && (format === "jpeg" || format === "png" || format === "webp")) {
    return imagePart(format, still);
  }
  const scaled = () =>
    new Bun.Image(still, { maxPixels }).resize(MAX_IMAGE_SIDE, MAX_IMAGE_SIDE, {
      fit: "inside",
      withoutEnlargement: true,
    });
  const part = await encode(scaled(), format);
  if (part.data.length <= MAX_IMAGE_BYTES) return part;
  return imagePart("jpeg", await scaled().jpeg({ quality: SMALL_QUALITY }).bytes());
}

/** The decoder reads the first frame of a GIF itself. Its other frames need not be read. */
const isGif = (bytes: Uint8Array) =>
  Buffer.from(bytes.subarray(0, 4)).toString("latin1") === "GIF8";

async function encode(image: Bun.Image, format: Bun.Image.Format): Promise<ImagePart> {
  if (format === "jpeg") return imagePart("jpeg", await image.jpeg({ quality: QUALITY }).bytes());
  if (format === "webp") return imagePart("webp", await image.webp({ quality: QUALITY }).bytes());
  return imagePart("png", await image.png().bytes());
}

const imagePart = (format: "jpeg" | "png" | "webp", data: Uint8Array): ImagePart => ({
  type: "image",
  media_type: `image/${format}`,
  data,
});
