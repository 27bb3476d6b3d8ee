import { crc32, deflateSync } from "node:zlib";

/** Text that is put where metadata is, and must not come out again. */
export const SECRET = "47.0707 N 15.4395 E";

/** A picture of 64 × 32 pixels with a gradient, as a BMP file. */
export function bmp(width = 64, height = 32): Uint8Array {
  const rowBytes = Math.ceil((width * 3) / 4) * 4;
  const file = Buffer.alloc(54 + rowBytes * height);
  file.write("BM");
  file.writeUInt32LE(file.length, 2);
  file.writeUInt32LE(54, 10);
  file.writeUInt32LE(40, 14);
  file.writeInt32LE(width, 18);
  file.writeInt32LE(height, 22);
  file.writeUInt16LE(1, 26);
  file.writeUInt16LE(24, 28);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) file.set([x * 4, y * 8, 128], 54 + y * rowBytes + x * 3);
  }
  return file;
}

/** A JPEG with EXIF: the camera was turned by 90°, and the place in the GPS directory. */
export async function jpegWithExif(): Promise<Uint8Array> {
  const jpeg = await new Bun.Image(bmp()).jpeg().bytes();
  const segment = Buffer.concat([Buffer.from("Exif\0\0"), exif()]);
  const header = Buffer.from([0xff, 0xe1, 0, 0]);
  header.writeUInt16BE(segment.length + 2, 2);
  return Buffer.concat([jpeg.subarray(0, 2), header, segment, jpeg.subarray(2)]);
}

/** A PNG with the same EXIF block and a comment. */
export async function pngWithExif(): Promise<Uint8Array> {
  const png = await new Bun.Image(bmp()).png().bytes();
  const afterHeader = 33;
  return Buffer.concat([
    png.subarray(0, afterHeader),
    pngChunk("eXIf", exif()),
    pngChunk("tEXt", Buffer.from(`Comment\0${SECRET}`)),
    png.subarray(afterHeader),
  ]);
}

/** A colour profile of this many bytes, with a text in it. */
function profileOf(bytes: number): Buffer {
  const profile = Buffer.alloc(bytes, SECRET);
  profile.writeUInt32BE(bytes, 0);
  profile.write("acsp", 36);
  return profile;
}

export async function pngWithProfile(bytes: number): Promise<Uint8Array> {
  const png = await new Bun.Image(bmp()).png().bytes();
  const body = Buffer.concat([Buffer.from("name\0\0"), deflateSync(profileOf(bytes))]);
  const afterHeader = 33;
  return Buffer.concat([
    png.subarray(0, afterHeader),
    pngChunk("iCCP", body),
    png.subarray(afterHeader),
  ]);
}

/** A JPEG whose profile is in two segments. */
export async function jpegWithProfile(bytes: number): Promise<Uint8Array> {
  const jpeg = await new Bun.Image(bmp()).jpeg().bytes();
  const profile = profileOf(bytes);
  const half = Math.ceil(bytes / 2);
  const segments = [profile.subarray(0, half), profile.subarray(half)].map((part, place) => {
    const header = Buffer.from([0xff, 0xe2, 0, 0, ...Buffer.from("ICC_PROFILE\0"), place + 1, 2]);
    header.writeUInt16BE(part.length + 16, 2);
    return Buffer.concat([header, part]);
  });
  return Buffer.concat([jpeg.subarray(0, 2), ...segments, jpeg.subarray(2)]);
}

export async function webpWithProfile(bytes: number): Promise<Uint8Array> {
  const webp = await new Bun.Image(bmp()).webp().bytes();
  const flags = [0x20, 0, 0, 0, 63, 0, 0, 31, 0, 0];
  const body = Buffer.concat([
    riffChunk("VP8X", Buffer.from(flags)),
    riffChunk("ICCP", profileOf(bytes)),
    webp.subarray(12),
  ]);
  return riffChunk("RIFF", Buffer.concat([Buffer.from("WEBP"), body]));
}

/** An animated WebP with a profile, and a text in other chunks. */
export function animatedWebpWithProfile(bytes: number): Uint8Array {
  const frames = Buffer.from(FRAMES, "base64");
  const secret = Buffer.from(SECRET);
  const frame = frames.subarray(22, 22 + 48);
  const body = Buffer.concat([
    riffChunk("VP8X", Buffer.from([0x22, 0, 0, 0, 63, 0, 0, 31, 0, 0])),
    riffChunk("ICCP", profileOf(bytes)),
    riffChunk("ANIM", Buffer.concat([frames.subarray(8, 14), secret])),
    riffChunk("ANMF", Buffer.concat([frame, riffChunk("EXIF", secret)])),
    riffChunk("ANMF", Buffer.concat([frame, riffChunk("XMP ", secret)])),
  ]);
  return riffChunk("RIFF", Buffer.concat([Buffer.from("WEBP"), body]));
}

/** A PNG of a few bytes that claims to have this many pixels. */
export function hugePng(width: number, height: number): Uint8Array {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    pngChunk("IHDR", header),
    pngChunk("IDAT", Bun.deflateSync(new Uint8Array(1000), { windowBits: 15 })),
    pngChunk("IEND", Buffer.alloc(0)),
  ]);
}

/** A GIF of 2 × 2 pixels with two frames, comments, text in its extensions, and bytes behind its end. */
export function animatedGif(): Uint8Array {
  const block = (kind: number, ...texts: string[]) => [
    ...[0x21, kind],
    ...texts.flatMap((text) => [text.length, ...Buffer.from(text, "latin1")]),
    0,
  ];
  const hidden = [SECRET.length, ...Buffer.from(SECRET)];
  const frame = (...data: number[]) => [
    ...[0x21, 0xf9, 4, 4, 10, 0, 0, ...hidden, 0],
    ...[0x2c, 0, 0, 0, 0, 2, 0, 2, 0, 0],
    ...[2, data.length, ...data, 0],
  ];
  return new Uint8Array([
    ...Buffer.from("GIF89a"),
    ...[2, 0, 2, 0, 0x80, 0, 0, 255, 0, 0, 0, 0, 255],
    ...block(0xff, "NETSCAPE2.0", "\u0001\u0000\u0000", SECRET),
    ...block(0xfe, SECRET),
    ...frame(0x84, 0x51),
    ...block(0xff, "XMP DataXMP", SECRET),
    ...frame(0x8c, 0x0a),
    0x3b,
    ...Buffer.from(SECRET),
  ]);
}

/** The same GIF, with frames of 2 × 2 pixels on a canvas of another size. */
export function gifOnCanvas(width: number, height: number): Uint8Array {
  const gif = Buffer.from(animatedGif());
  gif.writeUInt16LE(width, 6);
  gif.writeUInt16LE(height, 8);
  return gif;
}

/** A lossless WebP of 64 × 32 pixels with an EXIF block. */
export async function losslessWebp(): Promise<Uint8Array> {
  const webp = await new Bun.Image(bmp()).webp({ lossless: true }).bytes();
  const body = Buffer.concat([
    riffChunk("VP8X", Buffer.from([0x08, 0, 0, 0, 63, 0, 0, 31, 0, 0])),
    webp.subarray(12),
    riffChunk("EXIF", Buffer.from(SECRET)),
  ]);
  return riffChunk("RIFF", Buffer.concat([Buffer.from("WEBP"), body]));
}

/** An animated PNG whose second frame has the pixels of the first one. */
export async function animatedPng(): Promise<Uint8Array> {
  const png = Buffer.from(await new Bun.Image(bmp()).png().bytes());
  const afterHeader = 33;
  const dataAt = png.indexOf("IDAT") - 4;
  const data = png.subarray(dataAt + 8, dataAt + 8 + png.readUInt32BE(dataAt));
  const control = (sequence: number) => {
    const body = Buffer.alloc(26);
    for (const [place, value] of [sequence, 64, 32, 0, 0].entries()) {
      body.writeUInt32BE(value, place * 4);
    }
    body.set([0, 1, 0, 10], 20);
    return pngChunk("fcTL", body);
  };
  return Buffer.concat([
    png.subarray(0, afterHeader),
    pngChunk("acTL", Buffer.from([0, 0, 0, 2, 0, 0, 0, 0])),
    control(0),
    png.subarray(afterHeader, -12),
    control(1),
    pngChunk("fdAT", Buffer.concat([Buffer.from([0, 0, 0, 2]), data])),
    png.subarray(-12),
  ]);
}

/** A WebP of 64 × 32 pixels with two frames and an EXIF block. */
export function animatedWebp(): Uint8Array {
  const frames = Buffer.from(FRAMES, "base64");
  const exifChunk = riffChunk("EXIF", Buffer.from(SECRET));
  const flags = [0x02 | 0x08, 0, 0, 0, 63, 0, 0, 31, 0, 0];
  const body = Buffer.concat([riffChunk("VP8X", Buffer.from(flags)), frames, exifChunk]);
  return riffChunk("RIFF", Buffer.concat([Buffer.from("WEBP"), body]));
}

/** The ANIM and ANMF chunks that libwebp's `img2webp` made of two pictures of one colour. */
const FRAMES =
  "QU5JTQYAAAD/////AABBTk1GMAAAAAAAAAAAAD8AAB8AAGQAAAJWUDhMFwAAAC8/wAcAB1CUohSl/wEgIfw/r0b0P/UBAEFOTUYwAAAAAAAAAAAAPwAAHwAAZAAAAFZQOEwXAAAALz/ABwAHUOQiF7n/ASAh/D+vRvQ/9QEA";

function riffChunk(kind: string, body: Uint8Array): Buffer {
  const header = Buffer.from(`${kind}....`);
  header.writeUInt32LE(body.length, 4);
  return Buffer.concat([header, body, Buffer.alloc(body.length % 2)]);
}

function pngChunk(kind: string, body: Uint8Array): Buffer {
  const content = Buffer.concat([Buffer.from(kind), body]);
  const chunk = Buffer.alloc(content.length + 8);
  chunk.writeUInt32BE(body.length, 0);
  chunk.set(content, 4);
  chunk.writeUInt32BE(crc32(content), content.length + 4);
  return chunk;
}

const ORIENTATION = 0x0112;
const GPS_DIRECTORY = 0x8825;
const GPS_AREA = 0x001c;

/** A TIFF structure with an orientation (turned by 90°) and a GPS directory that names a place. */
function exif(): Buffer {
  const place = Buffer.from(SECRET);
  const gpsAt = 8 + 2 + 2 * 12 + 4;
  const placeAt = gpsAt + 2 + 12 + 4;
  const file = Buffer.alloc(placeAt + place.length);
  const entry = (at: number, tag: number, type: number, count: number, value: number) => {
    file.writeUInt16BE(tag, at);
    file.writeUInt16BE(type, at + 2);
    file.writeUInt32BE(count, at + 4);
    file.writeUInt32BE(value, at + 8);
  };
  file.write("MM\0*", 0, "latin1");
  file.writeUInt32BE(8, 4);
  file.writeUInt16BE(2, 8);
  entry(10, ORIENTATION, 3, 1, 6 << 16);
  entry(22, GPS_DIRECTORY, 4, 1, gpsAt);
  file.writeUInt16BE(1, gpsAt);
  entry(gpsAt + 2, GPS_AREA, 7, place.length, placeAt);
  file.set(place, placeAt);
  return file;
}
