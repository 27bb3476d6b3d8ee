import { constants } from "node:fs";
import { mkdir, open, opendir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { unavailable } from "../rules/failure.ts";
import type { Blob, BlobEntry, Blobs, ByteRange } from "./blobs.ts";

const OWNER_ONLY = 0o700;
/** Objects are spread over folders by the last characters of their id, which are random. */
const ID_LENGTH = 36;
const FOLDER_LENGTH = 2;
/** Where uploads are received. Without it, a folder is not a storage, or its disk is not mounted. */
export const INCOMING = "incoming";
/** What a restore has not finished. */
export const RESTORING = "restoring";
/** Folders without objects. The last one is that of a file system, for root alone. */
export const NO_OBJECTS: ReadonlySet<string> = new Set([INCOMING, RESTORING, "lost+found"]);
const READ_BYTES = 256 * 1024;
/** A file of the largest size by default. More would delay the first byte of a larger one. */
const MAX_LOADED_BYTES = 25 * 1024 * 1024;

/** Keeps objects as files in a folder. Several nodes can share it. */
export async function openDiskBlobs(folder: string): Promise<Blobs> {
  const incoming = join(folder, INCOMING);
  await mkdir(incoming, { recursive: true, mode: OWNER_ONLY });
  const pathOf = (name: string) => pathOfObject(folder, name);

  return {
    incoming,
    put: (name, path) =>
      reachable(async () => {
        const target = pathOf(name);
        await mkdir(dirname(target), { recursive: true, mode: OWNER_ONLY });
        await sync(path);
        await rename(path, target);
        await sync(dirname(target));
      }),
    open: (name) =>
      reachable(async () => {
        const found = await openFile(pathOf(name));
        // Without the folder the disk is not mounted, or was moved: the object may exist.
        if (!found) await stat(incoming);
        return found;
      }),
    delete: (name) => reachable(() => rm(pathOf(name), { force: true })),
    list: () => listFiles(folder),
  };
}

export const pathOfObject = (folder: string, name: string) =>
  join(folder, name.slice(ID_LENGTH - FOLDER_LENGTH, ID_LENGTH) || "other", name);

async function openFile(path: string): Promise<Blob | null> {
  const found = await stat(path).catch(missing);
  if (!found) return null;
  const file = Bun.file(path);
  return {
    size: found.size,
    stream: (range) =>
      reachable(async () => {
        await loadPages(path, range ?? { start: 0, end: found.size });
        return (range ? file.slice(range.start, range.end) : file).stream();
      }),
  };
}

/**
 * Reads a part of a file on the thread pool, so that its pages are in memory. The runtime sends files on
 * the event loop, which would wait for the disk: 8 to 40 ms for 25 MiB on a fast one.
 */
async function loadPages(path: string, { start, end }: ByteRange): Promise<void> {
  await using file = await open(path);
  const last = Math.min(end, start + MAX_LOADED_BYTES);
  const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, last - start));
  for (let at = start; at < last; at += buffer.length) {
    await file.read(buffer, 0, Math.min(buffer.length, last - at), at);
  }
}

async function* listFiles(folder: string): AsyncIterable<BlobEntry> {
  for await (const entry of await opendir(folder)) {
    if (!entry.isDirectory() || NO_OBJECTS.has(entry.name)) continue;
    const inner = join(folder, entry.name);
    for await (const { name } of await opendir(inner)) {
      const found = await stat(join(inner, name)).catch(missing);
      if (found) yield { name, size: found.size, modifiedAt: found.mtimeMs };
    }
  }
}

/** Makes the bytes of a file, or the names in a folder, durable. */
async function sync(path: string): Promise<void> {
  await using handle = await open(path, constants.O_RDONLY);
  await handle.sync();
}

/** Null for a file that does not exist. */
export function missing(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT") return null;
  throw error;
}

async function reachable<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw code === undefined ? error : unavailable(`the file storage failed (${code})`);
  }
}
