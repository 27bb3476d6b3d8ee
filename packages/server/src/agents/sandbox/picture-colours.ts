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
    .png()
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
const CHANNELS = 4;

/** The pixels of a small PNG as `Bun.Image` writes it: eight bits a channel, RGBA, not interlaced. */
function pixelsOf(png: Uint8Array): Pixel[] {
  const file = Buffer.from(png.buffer, png.byteOffset, png.byteLength);
  const data: Buffer[] = [];
  for (let at = HEADER_BYTES; at + CHUNK_BYTES <= file.length; ) {
    const length = file.readUInt32BE(at);
    if (file.toString("latin1", at + 4, at + 8) === "IDAT") {
      data.push(file.subarray(at + 8, at + 8 + length));
    }
    at += CHUNK_BYTES + length;
  }
  const bytes = unfilter(inflateSync(Buffer.concat(data)), SAMPLES * CHANNELS);
  return Array.from({ length: bytes.length / CHANNELS }, (_, index) => {
    const [red = 0, green = 0, blue = 0, alpha = 0] = bytes.subarray(index * CHANNELS);
    return [red, green, blue, alpha];
  });
}

/** Reverses the filters of the rows: each row begins with the number of its filter. */
function unfilter(filtered: Uint8Array, rowBytes: number): Uint8Array {
  const rows = filtered.length / (rowBytes + 1);
  const bytes = new Uint8Array(rows * rowBytes);
  for (let row = 0; row < rows; row++) {
    const filter = filtered[row * (rowBytes + 1)] ?? 0;
    for (let column = 0; column < rowBytes; column++) {
      const at = row * rowBytes + column;
      const left = column < CHANNELS ? 0 : (bytes[at - CHANNELS] ?? 0);
      const up = bytes[at - rowBytes] ?? 0;
      const corner = column < CHANNELS ? 0 : (bytes[at - rowBytes - CHANNELS] ?? 0);
      const value = filtered[row * (rowBytes + 1) + 1 + column] ?? 0;
      bytes[at] = value + predict(filter, left, up, corner);
    }
  }
  return bytes;
}

function predict(filter: number, left: number, up: number, corner: number): number {
  switch (filter) {
    case 1:
      return left;
    case 2:
      return up;
    case 3:
      return (left + up) >> 1;
    case 4:
      return nearest(left + up - corner, left, up, corner);
    default:
      return 0;
  }
}

/** The first of the candidates with the smallest distance. */
const nearest = (target: number, ...candidates: [number, number, number]): number =>
  candidates.reduce((best, each) =>
    Math.abs(target - each) < Math.abs(target - best) ? each : best,
  );
