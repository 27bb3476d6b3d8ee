import { crc32, inflateRawSync } from "node:zlib";

/** The files of a ZIP archive by name, read by its directory. Throws if a checksum is wrong. */
export function unzip(archive: Uint8Array): Map<string, string> {
  const bytes = Buffer.from(archive);
  const end = bytes.lastIndexOf(Buffer.from([0x50, 0x4b, 5, 6]));
  if (end === -1) throw new Error("the archive has no end");
  const files = new Map<string, string>();
  let place = bytes.readUInt32LE(end + 16);
  for (let left = bytes.readUInt16LE(end + 10); left > 0; left--) {
    const crc = bytes.readUInt32LE(place + 16);
    const compressed = bytes.readUInt32LE(place + 20);
    const nameLength = bytes.readUInt16LE(place + 28);
    const local = bytes.readUInt32LE(place + 42);
    const name = bytes.subarray(place + 46, place + 46 + nameLength).toString();
    const start = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
    const stored = bytes.subarray(start, start + compressed);
    const content = bytes.readUInt16LE(place + 10) === 0 ? stored : inflateRawSync(stored);
    if (crc32(content) !== crc) throw new Error(`${name} has a wrong checksum`);
    files.set(name, content.toString());
    place += 46 + nameLength + bytes.readUInt16LE(place + 30);
  }
  return files;
}

/** The objects of a file of JSON Lines in an archive. */
export const linesOf = (files: ReadonlyMap<string, string>, name: string): unknown[] =>
  (files.get(name) ?? "")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as unknown);
