import { createHash, type Hash } from "node:crypto";
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { ConfigError } from "../../config/config.ts";
import { previewOf } from "../../files/blobs.ts";
import { INCOMING, NO_OBJECTS, pathOfObject, RESTORING } from "../../files/disk.ts";
import { giveToOwnerOf, makeFolder, syncFolder, writeNewFile, writing } from "./support.ts";
import { appendEntry, contentOf, type PlacedEntry } from "./tar.ts";

/** The objects of the file storage in an archive: a folder, and a list with their checksums after it. */
const FOLDER = "files/";
const LIST = "files.jsonl";

const CHUNK_BYTES = 256 * 1024;

const Listed = z.object({
  name: z.string().regex(/^[0-9a-f-]{36}(?:\.preview)?$/),
  bytes: z.int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
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
async function appendObject(
  archive: FileHandle,
  folder: string,
  name: string,
): Promise<Listed | null> {
  await using source = await open(pathOfObject(folder, name), "r").catch(missingFile);
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

function missingFile(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT") return null;
  throw error;
}

function listOf(listed: readonly Listed[]): Buffer {
  const lines = listed.map((each) => `${JSON.stringify(each)}\n`).join("");
  return Buffer.from(`${lines}${JSON.stringify({ sha256_of_list: sumOf(lines) })}\n`);
}

const sumOf = (text: string) => createHash("sha256").update(text).digest("hex");

export interface VerifiedObject extends Listed {
  /** Passes the content to `write` chunk by chunk. Throws if it differs from the list. */
  read(write: (chunk: Uint8Array) => Promise<unknown>): Promise<void>;
}

/** The objects among the entries of an archive. Throws if they are not those that their list names. */
export async function objectsIn(
  path: string,
  entries: readonly PlacedEntry[],
): Promise<VerifiedObject[]> {
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

function verified(path: string, listed: Listed, entry: PlacedEntry): VerifiedObject {
  return {
    ...listed,
    async read(write) {
      const hash = createHash("sha256");
      for await (const chunk of contentOf(path, entry)) {
        hash.update(chunk);
        await write(chunk);
      }
      if (hash.digest("hex") !== listed.sha256) {
        throw new Error(`${entry.name} has a wrong checksum`);
      }
    },
  };
}

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

/**
 * Throws if the folder has objects, unless an interrupted restore has left them: then its draft is there,
 * and the backup has all of them.
 */
export function refuseStoredFiles(folder: string, objects: readonly VerifiedObject[]): void {
  if (!existsSync(folder)) return;
  const left = new Set(existsSync(draftOf(folder)) ? objects.map(({ name }) => name) : []);
  const isFree = readdirSync(folder, { withFileTypes: true }).every(
    (entry) =>
      NO_OBJECTS.has(entry.name) ||
      (entry.isDirectory() &&
        readdirSync(join(folder, entry.name)).every((name) => left.has(name))),
  );
  if (isFree) return;
  throw new ConfigError(
    `${folder} has files already. Move them away, or set PARLEY_FILES to another folder.`,
  );
}

/** Where objects are written until all of them are there: in the folder, which may be a mounted disk. */
const draftOf = (folder: string) => join(folder, RESTORING);

/** Writes objects to a draft. */
export async function writeObjects(
  objects: readonly VerifiedObject[],
  folder: string,
): Promise<void> {
  const draft = draftOf(folder);
  await writing(folder, () => rmSync(draft, { recursive: true, force: true }));
  for (const { name, read } of objects) {
    const path = pathOfObject(draft, name);
    await writing(folder, () => makeFolder(dirname(path)));
    await writeNewFile(path, read);
    giveToOwnerOf(folder, path);
  }
}

/** Moves the objects of the draft to their places. The draft stays until `deleteDraft`. */
export function placeObjects(objects: readonly VerifiedObject[], folder: string): void {
  const draft = draftOf(folder);
  for (const { name } of objects) {
    const path = pathOfObject(folder, name);
    makeFolder(dirname(path));
    renameSync(pathOfObject(draft, name), path);
  }
  for (const name of readdirSync(draft)) syncFolder(join(folder, name));
  makeFolder(join(folder, INCOMING));
}

/** Ends a restore, after the database got its final name. */
export const deleteDraft = (folder: string) =>
  rmSync(draftOf(folder), { recursive: true, force: true });

/**
 * Ends a restore that has failed. Without the draft, the next one would refuse the objects that an
 * interrupted one has placed.
 */
export function emptyDraft(folder: string): void {
  if (!existsSync(folder)) return;
  deleteDraft(folder);
  if (readdirSync(folder).some((name) => !NO_OBJECTS.has(name))) makeFolder(draftOf(folder));
}
