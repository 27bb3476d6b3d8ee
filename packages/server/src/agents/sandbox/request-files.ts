import { inflateSync } from "node:zlib";
import { decodeInTurn } from "../../files/decoding.ts";
import type { FilePart, ImagePart, ModelMessage } from "../../rules/model-content.ts";
import { estimateDocumentTokens, estimateImageTokens } from "../../rules/token-estimate.ts";
import { decodeText, isTextFile } from "../providers/file-text.ts";

/** A file of a request, as the sandbox describes it. */
export interface SandboxFile {
  /** A phrase such as «a picture of 640 × 480 pixels, mostly red and white». May have markup. */
  description: string;
  /** Estimated. */
  tokens: number;
}

/** The files of a message, and those that its text only names. */
export async function filesOf({ content }: ModelMessage, text: string): Promise<SandboxFile[]> {
  const files = content.filter((part) => part.type === "image" || part.type === "file");
  const described = await Promise.all(
    files.map((part) => (part.type === "image" ? describePicture(part) : describeFile(part))),
  );
  return [...described, ...namedFiles(text)];
}

/** How a message tells of a file whose content is not in the request. */
const NAMED =
  /^(?: {2}|\S[^:\n]{0,79}: )\(file ("(?:[^"\\\n]|\\.)*"), (.*?\d bytes); (?!it follows|only its beginning follows).*\)$/gm;

const namedFiles = (text: string): SandboxFile[] =>
  [...text.matchAll(NAMED)].map(([, name = "", facts]) => ({
    description: `the file «${unquoted(name)}» (${facts}), whose content I cannot see`,
    tokens: 0,
  }));

function unquoted(name: string): string {
  try {
    return JSON.parse(name);
  } catch {
    // A person has written something similar.
    return name;
  }
}

async function describePicture({ data }: ImagePart): Promise<SandboxFile> {
  try {
    const size = await new Bun.Image(data).metadata();
    const names = await decodeInTurn("sandbox", () => coloursOf(data));
    const colours = names.length === 0 ? "of many colours" : `mostly ${names.join(" and ")}`;
    return {
      description: `a picture of ${size.width} × ${size.height} pixels, ${colours}`,
      tokens: estimateImageTokens("anthropic", size),
    };
  } catch {
    // Damaged, or of a format that cannot be decoded: the answer says so.
    return { description: "a picture that I cannot read", tokens: 0 };
  }
}

const MAX_WORDS = 12;
const MAX_CHARACTERS = 120;

function describeFile(file: FilePart): SandboxFile {
  const { name, data } = file;
  if (!isTextFile(file)) {
    const description = `the document «${name}» of ${data.length} bytes`;
    return { description, tokens: estimateDocumentTokens(1) };
  }
  const text = decodeText(file);
  const words = text.trim().split(/\s+/);
  const start = [...words.slice(0, MAX_WORDS).join(" ")].slice(0, MAX_CHARACTERS).join("");
  return {
    description: `the text file «${name}», which begins with «${start}»`,
    tokens: Math.ceil(text.length / 4),
  };
}

/** The picture is reduced to this many pixels in both directions. */
const SAMPLES = 16;
/** The share of the pixels that a colour needs to be named. */
const MIN_SHARE = 0.2;
const MAX_NAMED = 2;
const OPAQUE = 128;

type Pixel = readonly [red: number, green: number, blue: number, alpha: number];

/** The names of the most frequent colours, the first one first. Empty if there are many. */
async function coloursOf(picture: Uint8Array): Promise<string[]> {
  const png = await new Bun.Image(picture)
    .resize(SAMPLES, SAMPLES, { fit: "fill", filter: "nearest" })
    .png({ palette: true })
    .bytes();
  const pixels = pixelsOf(png);
  const counts = [...Map.groupBy(pixels, nameOf)].map(([name, { length }]) => ({ name, length }));
  return counts
    .filter(({ length }) => length >= pixels.length * MIN_SHARE)
    .sort((one, other) => other.length - one.length)
    .slice(0, MAX_NAMED)
    .map(({ name }) => name);
}

/** Typical colours of each name. A pixel has the name of the nearest one. */
const COLOURS: readonly (readonly [name: string, ...tones: string[]])[] = [
  ["black", "#000000"],
  ["grey", "#808080", "#bfbfbf", "#404040"],
  ["white", "#ffffff"],
  ["red", "#e02020", "#a01010"],
  ["orange", "#ff8c00"],
  ["brown", "#6e3c14", "#8b5a2b"],
  ["yellow", "#f0e01e"],
  ["green", "#1ea032", "#40e040", "#0a500a"],
  ["turquoise", "#20d0d0", "#108080"],
  ["blue", "#1428dc", "#4080f0", "#101060"],
  ["purple", "#8020c0"],
  ["pink", "#f060b0", "#ffb0c8"],
];

const TONES = COLOURS.flatMap(([name, ...tones]) =>
  tones.map((tone) => ({ name, tone: Buffer.from(tone.slice(1), "hex") })),
);

function nameOf([red, green, blue, alpha]: Pixel): string {
  if (alpha < OPAQUE) return "transparent";
  const distance = ([r = 0, g = 0, b = 0]: Buffer) => Math.hypot(red - r, green - g, blue - b);
  return TONES.reduce((nearest, each) =>
    distance(each.tone) < distance(nearest.tone) ? each : nearest,
  ).name;
}

const HEADER_BYTES = 8;
const CHUNK_BYTES = 12;

/** The pixels of a small PNG with a palette as `Bun.Image` writes it: a byte each, not filtered. */
function pixelsOf(png: Uint8Array): Pixel[] {
  const file = Buffer.from(png.buffer, png.byteOffset, png.byteLength);
  const chunks = new Map<string, Buffer>();
  for (let at = HEADER_BYTES; at + CHUNK_BYTES <= file.length; ) {
    const end = at + 8 + file.readUInt32BE(at);
    chunks.set(file.toString("latin1", at + 4, at + 8), file.subarray(at + 8, end));
    at = end + 4;
  }
  const rows = inflateSync(chunks.get("IDAT") ?? "");
  const alphas = chunks.get("tRNS") ?? [];
  return [...rows]
    .filter((_, at) => at % (SAMPLES + 1) > 0)
    .map((color) => {
      const [red = 0, green = 0, blue = 0] = chunks.get("PLTE")?.subarray(3 * color) ?? [];
      return [red, green, blue, alphas[color] ?? 255];
    });
}
