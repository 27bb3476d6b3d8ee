import { type FileHandle, open } from "node:fs/promises";

/**
 * Files in the format of POSIX `ustar`, so that `tar` can read a backup without Parley. Not by
 * `Bun.Archive`, which holds an archive in memory, nor by a streaming library: a restore checks the list
 * at the end of an archive before it reads any content.
 */
const BLOCK_BYTES = 512;
/** The largest size in eleven octal digits. Larger ones are binary, as GNU tar writes them. */
const MAX_OCTAL_SIZE = 0o77777777777;

export interface TarEntry {
  readonly name: string;
  readonly bytes: number;
}

/** An entry of an archive, and where its content begins. */
export interface PlacedEntry extends TarEntry {
  readonly offset: number;
}

/** Appends one file to an archive, from chunks that add up to `bytes`. */
export async function appendEntry(
  archive: FileHandle,
  { name, bytes }: TarEntry,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  await writeAll(archive, headerOf(name, bytes));
  let written = 0;
  for await (const chunk of chunks) {
    await writeAll(archive, chunk);
    written += chunk.length;
  }
  if (written !== bytes) throw new Error(`${name} changed while it was copied`);
  await writeAll(archive, new Uint8Array(paddingOf(bytes)));
}

/** The operating system may take a part of a chunk only, such as when the disk is almost full. */
export async function writeAll(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let start = 0; start < chunk.length; ) {
    start += (await file.write(chunk, start)).bytesWritten;
  }
}

export async function endArchive(archive: FileHandle): Promise<void> {
  await writeAll(archive, new Uint8Array(2 * BLOCK_BYTES));
}

/** The entries of an archive. Throws if it is damaged or incomplete. */
export async function readEntries(path: string): Promise<PlacedEntry[]> {
  await using archive = await open(path, "r");
  const { size } = await archive.stat();
  const entries: PlacedEntry[] = [];
  const header = new Uint8Array(BLOCK_BYTES);
  for (let position = 0; ; ) {
    const { bytesRead } = await archive.read(header, 0, BLOCK_BYTES, position);
    if (bytesRead === BLOCK_BYTES && header.every((byte) => byte === 0)) return entries;
    const entry = bytesRead === BLOCK_BYTES ? readHeader(header) : null;
    const offset = position + BLOCK_BYTES;
    if (!entry || offset + entry.bytes > size)
      throw new Error("the archive is damaged or incomplete");
    entries.push({ ...entry, offset });
    position = offset + entry.bytes + paddingOf(entry.bytes);
  }
}

export const contentOf = (path: string, { offset, bytes }: PlacedEntry) =>
  Bun.file(path)
    .slice(offset, offset + bytes)
    .stream();

const paddingOf = (bytes: number) => (BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES;

function headerOf(name: string, bytes: number): Uint8Array {
  const header = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, "0")}\0`;
  header.write(name, 0);
  header.write(octal(0o600, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  if (bytes <= MAX_OCTAL_SIZE) header.write(octal(bytes, 11), 124);
  else {
    header.writeUInt8(0x80, 124);
    header.writeBigUInt64BE(BigInt(bytes), 128);
  }
  header.write(octal(Math.floor(Date.now() / 1000), 11), 136);
  header.write("0", 156);
  header.write("ustar\x0000", 257);
  header.write(`${octal(checksumOf(header), 6)} `, 148);
  return header;
}

/** Null if the checksum is wrong. */
function readHeader(block: Uint8Array): TarEntry | null {
  const header = Buffer.from(block);
  const text = (start: number, end: number) =>
    header.subarray(start, end).toString().split("\0")[0] ?? "";
  if (Number.parseInt(text(148, 156), 8) !== checksumOf(header)) return null;
  const isBinary = header.readUInt8(124) === 0x80;
  const bytes = isBinary ? Number(header.readBigUInt64BE(128)) : Number.parseInt(text(124, 136), 8);
  return { name: text(0, 100), bytes };
}

/** The sum of all bytes, with the checksum itself as spaces. */
function checksumOf(header: Uint8Array): number {
  let sum = 0;
  for (const [place, byte] of header.entries()) sum += place >= 148 && place < 156 ? 32 : byte;
  return sum;
}
