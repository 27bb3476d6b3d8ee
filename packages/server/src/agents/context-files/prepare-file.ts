import type { File } from "@parley/protocol";
import { animationIn } from "../../files/animations.ts";
import { MAX_SIDE_PIXELS } from "../../files/images.ts";
import { Damaged } from "../../files/picture-parts.ts";
import { decodeKnownText } from "../../files/text-encoding.ts";
import { type LoadedFile, shownKind } from "../../rules/context-files.ts";
import type { FilePart, ImagePart } from "../../rules/model-content.ts";
import { indentLines } from "../../rules/quoting.ts";
import {
  estimateDocumentTokens,
  estimateImageTokens,
  estimateTokens,
  MAX_IMAGE_SIDE,
} from "../../rules/token-estimate.ts";
import type { PdfInspector } from "./pdf-pages.ts";
import { MAX_PAGES } from "./scan-pdf.ts";

/** Providers reject larger pictures: 5 MB in base64, and 32 MB for the whole request. */
const MAX_IMAGE_BYTES = 2 << 20;
const QUALITY = 85;
const SMALL_QUALITY = 70;
/** The part of a text file that is read. */
const MAX_TEXT_BYTES = 100_000;
const MAX_TEXT_TOKENS = 20_000;

export interface ModelLimits {
  readonly protocol: "anthropic" | "openai";
  readonly context_tokens: number;
  readonly max_output_tokens: number;
  /** Pictures with more are not decoded. */
  readonly image_pixels: number;
}

export const bytesToRead = (file: File) =>
  shownKind(file) === "text" ? Math.min(file.size, MAX_TEXT_BYTES) : file.size;

export const maxPreparedBytes = (file: File) =>
  shownKind(file) === "image" ? MAX_IMAGE_BYTES : bytesToRead(file);

export function prepareFile(
  file: File,
  bytes: Uint8Array,
  limits: ModelLimits,
  pdfs: PdfInspector,
): Promise<LoadedFile> {
  const kind = shownKind(file);
  if (kind === "image") return prepareImage(file, bytes, limits);
  if (kind === "document") return prepareDocument(file, bytes, pdfs);
  return prepareText(file, bytes, limits);
}

async function prepareImage(
  { width, height }: File,
  bytes: Uint8Array,
  { protocol, image_pixels }: ModelLimits,
): Promise<LoadedFile> {
  const size = { width: width ?? MAX_IMAGE_SIDE, height: height ?? MAX_IMAGE_SIDE };
  try {
    const part = await scaleImage(bytes, image_pixels);
    const tokens = estimateImageTokens(protocol, size);
    return { status: "shown", part, tokens, isCut: false };
  } catch (error) {
    const { code } = error as { code?: string };
    if (error instanceof Damaged || code?.startsWith("ERR_IMAGE_")) return { status: "unreadable" };
    throw error;
  }
}

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

async function prepareDocument(
  file: File,
  bytes: Uint8Array,
  pdfs: PdfInspector,
): Promise<LoadedFile> {
  const facts = await pdfs.inspect(file.id, bytes);
  if (facts?.encrypted) return { status: "unreadable" };
  if (!facts || facts.pages > MAX_PAGES) return { status: "too_long" };
  const tokens = estimateDocumentTokens(facts.pages);
  return { status: "shown", part: filePart(file, bytes), tokens, isCut: false };
}

async function prepareText(
  file: File,
  bytes: Uint8Array,
  { context_tokens, max_output_tokens }: ModelLimits,
): Promise<LoadedFile> {
  // A character at the end may be incomplete.
  const decoded = decodeKnownText(bytes, file.type, bytes.length === file.size);
  // Only the beginning of a file decides its type.
  const text = decoded.replaceAll("\0", "\ufffd");
  if (text.trim() === "") return { status: "empty" };
  // The rest is for the conversation and for other files.
  const quarter = Math.floor((context_tokens - max_output_tokens) / 4);
  const shown = cutToTokens(text, Math.min(MAX_TEXT_TOKENS, quarter));
  if (shown.trim() === "") return { status: "too_long" };
  const isCut = shown.length < text.length || bytes.length < file.size;
  const part = filePart(file, Buffer.from(isCut ? `${shown}\n[The rest is not shown.]` : shown));
  return { status: "shown", part, tokens: tokensOf(shown), isCut };
}

/** Text files are indented where a protocol has no documents. */
const tokensOf = (text: string) => estimateTokens(indentLines(text));

/** The beginning of a text that takes at most this many tokens. */
function cutToTokens(text: string, maxTokens: number): string {
  let cut = text;
  for (let tokens = tokensOf(cut); tokens > maxTokens && cut !== ""; tokens = tokensOf(cut)) {
    const length = Math.floor(cut.length * Math.min(0.95, (maxTokens / tokens) * 0.98));
    cut = cut.slice(0, Math.max(0, length));
  }
  // A surrogate without its other half is not a character.
  return cut.replace(/[\ud800-\udbff]$/, "");
}

/** The media type has no encoding: text is in UTF-8 here. */
const filePart = ({ name, type }: File, data: Uint8Array): FilePart => ({
  type: "file",
  name,
  media_type: type.replace(/;.*/, ""),
  data,
});
