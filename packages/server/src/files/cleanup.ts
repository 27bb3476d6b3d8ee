import { opendir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { markBytesFound } from "../domain/files.ts";
import type { Logger } from "../observe/log.ts";
import { FIRST_FILE, type StoredFile } from "../store/files.ts";
import type { Store } from "../store/store.ts";
import { type BlobEntry, type Blobs, previewOf } from "./blobs.ts";

/** Rows that one unit of work reads or deletes. */
const BATCH_ROWS = 100;
/** Objects without a row that one run deletes at most. The next run continues. */
const MOST_UNKNOWN = 10_000;
/** Up to this many objects without a row are deleted even if they are most of all. */
const FEW_UNKNOWN = 100;
/** Files whose bytes one run looks for. Further runs continue, and begin again after the last one. */
const CHECKED_FILES = 1000;
/** The names of objects that this service has made; a bucket may have others. */
const OWN_NAME = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.preview)?$/;

export interface CleanupOptions {
  readonly store: Pick<Store, "read" | "write">;
  readonly blobs: Blobs;
  readonly log: Logger;
  /** Called between two steps. Throws to stop. */
  proceed(): Promise<void>;
}

export async function deleteBlob(blobs: Blobs, blob: string): Promise<void> {
  await blobs.delete(previewOf(blob));
  await blobs.delete(blob);
}

/** Deletes the bytes of deleted files. What a crash interrupts is deleted again by the next run. */
export async function deleteAbandonedBlobs(options: CleanupOptions): Promise<void> {
  const { store, blobs, proceed } = options;
  const next = () => store.read((tx) => tx.abandonedBlobs(BATCH_ROWS));
  for (let found = await next(); found.length > 0; found = await next()) {
    for (const blob of found) {
      await deleteBlob(blobs, blob);
      await proceed();
    }
    await store.write((tx) => tx.forgetBlobs(found));
  }
}

/** Deletes files that were announced before a time and that nothing uses. */
export async function deleteUnusedFiles(options: CleanupOptions, before: number): Promise<void> {
  const { store, log, proceed } = options;
  let files = 0;
  const next = () => store.read((tx) => tx.unusedFiles(before, BATCH_ROWS));
  for (let found = await next(); found.length > 0; found = await next()) {
    files += await store.write((tx) => tx.deleteUnusedFiles(found));
    await proceed();
  }
  if (files > 0) log.info({ files }, "unused uploads deleted");
}

export interface StorageFigures {
  readonly objects: number;
  readonly bytes: number;
}

/**
 * Deletes objects that are older than a time and belong to no file, such as those of uploads that a
 * crash interrupted. Returns how many objects there are. Throws, and deletes nothing, if most of them
 * belong to no file: then the storage is probably that of another installation.
 */
export async function deleteUnknownBlobs(options: CleanupOptions, before: number) {
  const { blobs, log, proceed } = options;
  const found = { objects: 0, bytes: 0 };
  const toDelete: string[] = [];
  let unknown = 0;
  for await (const batch of batchesOf(blobs.list())) {
    found.objects += batch.length;
    found.bytes += batch.reduce((sum, { size }) => sum + size, 0);
    const old = batch.flatMap(({ name, modifiedAt }) => (modifiedAt < before ? name : []));
    const names = await unknownAmong(options, old);
    unknown += names.length;
    if (toDelete.length < MOST_UNKNOWN) toDelete.push(...names);
    await proceed();
  }
  if (unknown > FEW_UNKNOWN && unknown * 2 > found.objects) {
    throw new Error(
      `${unknown} of ${found.objects} objects in the file storage belong to no file: is it the storage of this installation?`,
    );
  }
  for (const name of toDelete) {
    await blobs.delete(name);
    await proceed();
  }
  if (toDelete.length > 0) log.info({ objects: toDelete.length }, "unknown file objects deleted");
  return found;
}

async function* batchesOf(entries: AsyncIterable<BlobEntry>): AsyncGenerator<BlobEntry[]> {
  let batch: BlobEntry[] = [];
  for await (const entry of entries) {
    if (!OWN_NAME.test(entry.name)) continue;
    batch.push(entry);
    if (batch.length < BATCH_ROWS) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Those of these objects that belong to no file. */
async function unknownAmong({ store }: CleanupOptions, names: readonly string[]) {
  if (names.length === 0) return [];
  const ids = [...new Set(names.map(blobOf))];
  const used = new Set(await store.read((tx) => tx.usedBlobs(ids)));
  return names.filter((name) => !used.has(blobOf(name)));
}

const blobOf = (name: string) => OWN_NAME.exec(name)?.[1] ?? name;

/**
 * Looks for the bytes of the files after a given one. A file whose bytes are missing is kept, and
 * marked, because they may come back: the storage may have been restored incompletely. Returns the
 * file after which the next run continues.
 */
export async function checkFiles(options: CleanupOptions, after: string): Promise<string> {
  const { store, proceed } = options;
  let last = after;
  for (let checked = 0; checked < CHECKED_FILES; checked += BATCH_ROWS) {
    const files = await store.read((tx) => tx.storedFiles(last, BATCH_ROWS));
    for (const file of files) {
      await checkFile(options, file);
      await proceed();
    }
    if (files.length < BATCH_ROWS) return FIRST_FILE;
    last = files.at(-1)?.id ?? FIRST_FILE;
  }
  return last;
}

async function checkFile({ store, blobs, log }: CleanupOptions, file: StoredFile): Promise<void> {
  const isFound = (await blobs.open(file.blob)) !== null;
  if (isFound === (file.status === "ready")) return;
  if (!(await store.write((tx) => markBytesFound(tx, file, isFound)))) return;
  const fields = { file: file.id, blob: file.blob };
  if (isFound) log.info(fields, "file bytes found again");
  else log.error(fields, "file bytes missing");
}

/** Deletes what interrupted uploads have left in the folder of received files. */
export async function deleteInterruptedUploads(folder: string, before: number): Promise<void> {
  for await (const { name } of await opendir(folder)) {
    const path = join(folder, name);
    // The upload may have ended meanwhile, and its file is gone.
    const found = await stat(path).catch(() => null);
    if (found && found.mtimeMs < before) await rm(path, { force: true });
  }
}
