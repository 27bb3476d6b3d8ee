import { promisify } from "node:util";
import { constants, crc32, deflateRaw } from "node:zlib";

const compress = promisify(deflateRaw);

/** A file of an archive. Its content is produced while the archive is written. */
export interface ZipEntry {
  readonly name: string;
  readonly content: AsyncIterable<string | Uint8Array>;
  /** Whether the content is compressed already, so that compressing it again is not worth it. */
  readonly isCompressed?: boolean;
}

/** What the directory at the end of the archive says of a file. */
interface Written {
  readonly name: Buffer;
  readonly crc: number;
  readonly compressed: number;
  readonly size: number;
  readonly offset: number;
}

/** Text is compressed in pieces of at least this size. */
const PIECE_BYTES = 64 * 1024;
/** Sizes follow the content of each file (bit 3), and names are UTF-8 (bit 11). */
const FLAGS = 0x0808;
const DEFLATE = 8;
const VERSION_NEEDED = 20;
/** Sizes and offsets have 32 bits, and the number of files has 16; larger ones are in ZIP64 fields. */
const MAX_BYTES = 0xffff_ffff;
const MAX_FILES = 0xffff;
const VERSION_ZIP64 = 45;
/** Ends a deflate stream: an empty final block. */
const FINAL_BLOCK = Buffer.from([0x03, 0x00]);
/** Each piece ends at a byte boundary, so that pieces that were compressed alone can be joined. */
const JOINABLE = { finishFlush: constants.Z_SYNC_FLUSH };
const UNCOMPRESSED = { ...JOINABLE, level: constants.Z_NO_COMPRESSION };

/**
 * Writes a ZIP archive as a stream: nothing but the current piece is in memory. Compression runs on
 * other threads. Throws when a file of it is larger than 4 GiB.
 */
export async function* zip(
  entries: AsyncIterable<ZipEntry>,
  at: Date,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const time = dosTime(at);
  const written: Written[] = [];
  let offset = 0;
  for await (const { name: title, content, isCompressed = false } of entries) {
    const name = Buffer.from(title);
    const figures = { crc: 0, compressed: FINAL_BLOCK.length, size: 0 };
    yield localHeader(name, time);
    for await (const piece of pieces(content)) {
      const compressed = await compress(piece, isCompressed ? UNCOMPRESSED : JOINABLE);
      figures.crc = crc32(piece, figures.crc);
      figures.size += piece.length;
      figures.compressed += compressed.length;
      if (Math.max(figures.size, figures.compressed) > MAX_BYTES) throw tooLarge(title);
      yield compressed;
    }
    yield FINAL_BLOCK;
    yield descriptor(figures);
    written.push({ name, ...figures, offset });
    offset += LOCAL_BYTES + name.length + figures.compressed + DESCRIPTOR_BYTES;
  }
  const directory = written.map((each) => directoryEntry(each, time));
  const bytes = directory.reduce((sum, { length }) => sum + length, 0);
  yield* directory;
  yield endOfDirectory(written.length, bytes, offset);
}

const tooLarge = (name: string) => new Error(`${name} is larger than 4 GiB`);

/** Joins short texts to pieces that are worth compressing. Bytes stay as they are. */
async function* pieces(content: AsyncIterable<string | Uint8Array>): AsyncGenerator<Buffer> {
  let text = "";
  for await (const each of content) {
    if (typeof each !== "string") {
      yield Buffer.from(each.buffer, each.byteOffset, each.byteLength);
      continue;
    }
    text += each;
    if (text.length < PIECE_BYTES) continue;
    yield Buffer.from(text);
    text = "";
  }
  if (text !== "") yield Buffer.from(text);
}

const LOCAL_BYTES = 30;

function localHeader(name: Buffer, time: number): Buffer<ArrayBuffer> {
  const header = Buffer.alloc(LOCAL_BYTES);
  header.writeUInt32LE(0x04034b50, 0);
  header.writeUInt16LE(VERSION_NEEDED, 4);
  header.writeUInt16LE(FLAGS, 6);
  header.writeUInt16LE(DEFLATE, 8);
  header.writeUInt32LE(time, 10);
  header.writeUInt16LE(name.length, 26);
  return Buffer.concat([header, name]);
}

const DESCRIPTOR_BYTES = 16;

function descriptor({ crc, compressed, size }: Omit<Written, "name" | "offset">) {
  const text = Buffer.alloc(DESCRIPTOR_BYTES);
  text.writeUInt32LE(0x08074b50, 0);
  text.writeUInt32LE(crc, 4);
  text.writeUInt32LE(compressed, 8);
  text.writeUInt32LE(size, 12);
  return text;
}

function directoryEntry(
  { name, crc, compressed, size, offset }: Written,
  time: number,
): Buffer<ArrayBuffer> {
  const entry = Buffer.alloc(46);
  entry.writeUInt32LE(0x02014b50, 0);
  entry.writeUInt16LE(VERSION_NEEDED, 4);
  entry.writeUInt16LE(VERSION_NEEDED, 6);
  entry.writeUInt16LE(FLAGS, 8);
  entry.writeUInt16LE(DEFLATE, 10);
  entry.writeUInt32LE(time, 12);
  entry.writeUInt32LE(crc, 16);
  entry.writeUInt32LE(compressed, 20);
  entry.writeUInt32LE(size, 24);
  entry.writeUInt16LE(name.length, 28);
  if (offset < MAX_BYTES) {
    entry.writeUInt32LE(offset, 42);
    return Buffer.concat([entry, name]);
  }
  const extra = Buffer.alloc(12);
  extra.writeUInt16LE(0x0001, 0);
  extra.writeUInt16LE(8, 2);
  extra.writeBigUInt64LE(BigInt(offset), 4);
  entry.writeUInt16LE(VERSION_ZIP64, 6);
  entry.writeUInt16LE(extra.length, 30);
  entry.writeUInt32LE(MAX_BYTES, 42);
  return Buffer.concat([entry, name, extra]);
}

function endOfDirectory(count: number, bytes: number, offset: number): Buffer<ArrayBuffer> {
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(Math.min(count, MAX_FILES), 8);
  end.writeUInt16LE(Math.min(count, MAX_FILES), 10);
  end.writeUInt32LE(Math.min(bytes, MAX_BYTES), 12);
  end.writeUInt32LE(Math.min(offset, MAX_BYTES), 16);
  const isLarge = count >= MAX_FILES || bytes >= MAX_BYTES || offset >= MAX_BYTES;
  return isLarge ? Buffer.concat([endOfDirectory64(count, bytes, offset), end]) : end;
}

/** The end of the directory with 64 bits for each figure, and the record that says where it is. */
function endOfDirectory64(count: number, bytes: number, offset: number): Buffer<ArrayBuffer> {
  const end = Buffer.alloc(76);
  end.writeUInt32LE(0x06064b50, 0);
  end.writeBigUInt64LE(44n, 4);
  end.writeUInt16LE(VERSION_ZIP64, 12);
  end.writeUInt16LE(VERSION_ZIP64, 14);
  end.writeBigUInt64LE(BigInt(count), 24);
  end.writeBigUInt64LE(BigInt(count), 32);
  end.writeBigUInt64LE(BigInt(bytes), 40);
  end.writeBigUInt64LE(BigInt(offset), 48);
  end.writeUInt32LE(0x07064b50, 56);
  end.writeBigUInt64LE(BigInt(offset + bytes), 64);
  end.writeUInt32LE(1, 72);
  return end;
}

/** The time and date of a ZIP file, as one number: two seconds precise, from 1980 on. */
function dosTime(at: Date): number {
  const time = (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1);
  const date =
    ((at.getUTCFullYear() - 1980) << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate();
  return ((date << 16) | time) >>> 0;
}
