import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { z } from "zod";
import { previewOf } from "../../files/blobs.ts";
import { missing, pathOfObject } from "../../files/disk.ts";
import { appendEntry, contentOf, type PlacedEntry } from "./tar.ts";

/** The objects of the file storage in an archive: a folder, and a list with their checksums after it. */
const FOLDER = "files/";
const LIST = "files.jsonl";

const CHUNK_BYTES = 256 * 1024;

/** What a list says of the content of an entry. */
export const Digest = z.object({
  bytes: z.int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

const Listed = Digest.extend({ name: z.string().regex(/^[0-9a-f-]{36}(?:\.preview)?$/) });
type Listed = z.infer<typeof Listed>;

/** The last line of the list: the checksum of those before it. */
const Sealed = z.object({ sha256_of_list: z.string() });

export interface ObjectFigures {
  /** Objects in the backup, previews included. */
  readonly objects: number;
  /** Files whose bytes were not found, such as those that were deleted while the backup was written. */
  readonly missing: number;
}

/** Appends the bytes of files to an archive, with their previews. Files may disappear meanwhile. */
export async function appendObjects(
  archive: FileHandle,
  folder: string,
  blobs: readonly string[],
  progress: (done: number, total: number) => void,
): Promise<ObjectFigures> {
  const listed: Listed[] = [];
  let missing = 0;
  for (const [place, blob] of blobs.entries()) {
    const copied = await appendObject(archive, folder, blob);
    if (copied) listed.push(copied);
    else missing++;
    const preview = copied && (await appendObject(archive, folder, previewOf(blob)));
    if (preview) listed.push(preview);
    progress(place + 1, blobs.length);
  }
  if (listed.length > 0) {
    const text = listOf(listed);
    await appendEntry(archive, { name: LIST, bytes: text.length }, [text]);
  }
  return { objects: listed.length, missing };
}

/** Null if there is no such object. An open file can be read to its end, even if it is deleted. */
async function appendObject(archive: FileHandle, folder: string, name: string) {
  await using source = await open(pathOfObject(folder, name), "r").catch(missing);
  if (!source) return null;
  const { size: bytes } = await source.stat();
  const hash = createHash("sha256");
  await appendEntry(archive, { name: FOLDER + name, bytes }, chunksOf(source, hash));
  return { name, bytes, sha256: hash.digest("hex") };
}

async function* chunksOf(source: FileHandle, hash: Hash): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(CHUNK_BYTES);
  for (let position = 0; ; ) {
    const { bytesRead } = await source.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) return;
    const chunk = buffer.subarray(0, bytesRead);
    hash.update(chunk);
    yield chunk;
    position += bytesRead;
  }
}

function listOf(listed: readonly Listed[]): Buffer {
  const lines = listed.map((each) => `${JSON.stringify(each)}\n`).join("");
  return Buffer.from(`${lines}${JSON.stringify({ sha256_of_list: sumOf(lines) })}\n`);
}

const sumOf = (text: string) => createHash("sha256").update(text).digest("hex");

export interface Verified {
  readonly name: string;
  /** Passes the content to `write` chunk by chunk. Throws if it differs from the list. */
  read(write: (chunk: Uint8Array) => Promise<unknown>): Promise<void>;
}

/** The objects among the entries of an archive. Throws if they are not those that their list names. */
export async function objectsIn(path: string, entries: readonly PlacedEntry[]) {
  const list = entries.at(-1);
  if (!list) return [];
  const listed = list.name === LIST ? await readList(path, list) : null;
  const found = entries.slice(0, -1).map(({ name, bytes }) => `${name} ${bytes}`);
  const wanted = listed?.map(({ name, bytes }) => `${FOLDER}${name} ${bytes}`);
  if (!listed || found.join() !== wanted?.join() || new Set(wanted).size !== wanted.length) {
    throw new Error("the archive does not have the files that its list names");
  }
  return listed.map((each, place) => verified(path, each, entries[place] as PlacedEntry));
}

/** The content of an entry, which is checked as it is read, through `pass`. */
export const verified = (
  path: string,
  { name, sha256 }: Pick<Listed, "name" | "sha256">,
  entry: PlacedEntry,
  pass = (chunks: AsyncIterable<Uint8Array>) => chunks,
): Verified => ({
  name,
  async read(write) {
    const hash = createHash("sha256");
    for await (const chunk of pass(contentOf(path, entry))) {
      hash.update(chunk);
      await write(chunk);
    }
    if (hash.digest("hex") !== sha256) throw new Error(`${entry.name} has a wrong checksum`);
  },
});

async function readList(path: string, entry: PlacedEntry): Promise<Listed[] | null> {
  const text = await new Response(contentOf(path, entry)).text();
  const end = text.lastIndexOf("\n", text.length - 2) + 1;
  const lines = text.slice(0, end);
  try {
    if (Sealed.parse(JSON.parse(text.slice(end))).sha256_of_list !== sumOf(lines)) return null;
    const parsed = lines.split("\n").filter(Boolean);
    return parsed.map((line) => Listed.parse(JSON.parse(line)));
  } catch {
    // Damaged.
    return null;
  }
}
