import { crc32, deflateSync } from "node:zlib";

type Colour = readonly [red: number, green: number, blue: number];

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

/** A PNG file with vertical stripes of these colours, all of the same width. */
export function stripedPng(width: number, height: number, ...colours: Colour[]) {
  const row = Buffer.alloc(1 + width * 3);
  for (let x = 0; x < width; x++) {
    row.set(colours[Math.floor((x * colours.length) / width)] ?? [0, 0, 0], 1 + x * 3);
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Eight bits for each of red, green and blue.
  header.set([8, 2], 8);
  const pixels = Buffer.concat(Array.from({ length: height }, () => row));
  const chunks = [chunk("IHDR", header), chunk("IDAT", deflateSync(pixels)), chunk("IEND")];
  return new Uint8Array(Buffer.concat([Buffer.from(SIGNATURE), ...chunks]));
}

function chunk(kind: string, body = Buffer.alloc(0)): Buffer {
  const content = Buffer.concat([Buffer.from(kind), body]);
  const whole = Buffer.alloc(content.length + 8);
  whole.writeUInt32BE(body.length, 0);
  whole.set(content, 4);
  whole.writeUInt32BE(crc32(content), content.length + 4);
  return whole;
}
