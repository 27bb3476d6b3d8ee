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
