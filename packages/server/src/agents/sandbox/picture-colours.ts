import { inflateSync } from "node:zlib";

/** The picture is reduced to this many pixels in both directions. */
const SAMPLES = 16;
/** The share of the pixels that a colour needs to be named. */
const MIN_SHARE = 0.2;
const MAX_NAMED = 2;
const OPAQUE = 128;

type Pixel = readonly [red: number, green: number, blue: number, alpha: number];

/** The names of the most frequent colours, the first one first. Empty if there are many. */
export async function coloursOf(picture: Uint8Array): Promise<string[]> {
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

function nameOf([red, green, blue, alpha]: Pixel): string {
  if (alpha < OPAQUE) return "transparent";
  const max = Math.max(red, green, blue) / 255;
  const min = Math.min(red, green, blue) / 255;
  const lightness = (max + min) / 2;
  const saturation = max === min ? 0 : (max - min) / (1 - Math.abs(2 * lightness - 1));
  if (lightness < 0.12) return "black";
  if (lightness > 0.93) return "white";
  if (saturation < 0.15) return lightness > 0.85 ? "white" : "grey";
  return hueName(hueOf(red, green, blue), lightness);
}

/** In degrees: 0 is red, 120 green, 240 blue. */
function hueOf(red: number, green: number, blue: number): number {
  const max = Math.max(red, green, blue);
  const range = max - Math.min(red, green, blue);
  if (max === red) return (60 * ((green - blue) / range) + 360) % 360;
  return max === green ? 60 * ((blue - red) / range + 2) : 60 * ((red - green) / range + 4);
}

const HUES = [
  [15, "red"],
  [45, "orange"],
  [70, "yellow"],
  [165, "green"],
  [195, "turquoise"],
  [255, "blue"],
  [290, "purple"],
  [345, "pink"],
] as const;

function hueName(hue: number, lightness: number): string {
  const name = HUES.find(([end]) => hue < end)?.[1] ?? "red";
  if (name === "orange" && lightness < 0.4) return "brown";
  if (name === "red" && lightness > 0.75) return "pink";
  return name;
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
