import { copyFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { existingBlobs, openBlobs } from "../compose/backends.ts";
import { ConfigError } from "../config/config.ts";
import type { FileStorage } from "../config/file-storage.ts";
import { missing, pathOfObject } from "../files/disk.ts";
import type { Key, Row, TransferSource } from "../store/transfer.ts";

export interface FileMigration {
  readonly dataDir: string;
  /** The storage of the servers that use the target. */
  readonly files: FileStorage | null;
  print(line: string): void;
}

/**
 * Copies the bytes of files from the data folder to the configured storage. Objects never change: those
 * that the storage has with the same size are not copied again, so that it can be stopped and run again.
 */
export async function migrateFiles({ dataDir, files, print }: FileMigration): Promise<void> {
  const folder = resolve(dataDir, "files");
  const source = await existingBlobs({ kind: "disk", folder });
  if (!source || (files?.kind === "disk" && files.folder === folder)) return;
  if (!files) {
    for await (const _ of source.list()) throw noStorage(folder);
    return;
  }
  const target = await openBlobs(files, dataDir);
  let [objects, copied] = [0, 0];
  for await (const { name, size } of source.list()) {
    objects++;
    if ((await target.open(name))?.size === size) continue;
    // The storage takes the file that it is given.
    const copy = join(target.incoming, name);
    // A running server may have deleted it.
    const copying = copyFile(pathOfObject(folder, name), copy);
    if ((await copying.catch(missing)) === null) continue;
    await target.put(name, copy);
    if ((await target.open(name))?.size !== size) throw new Error(`${name} was not copied`);
    copied++;
  }
  print(`files: ${objects} objects, ${copied} copied`);
}

const BATCH_ROWS = 500;

/** The objects that the database names: those of files whose bytes are not known to be lost. */
export function namedObjects(source: TransferSource): Set<string> {
  const table = source.tables.find(({ name }) => name === "files");
  if (!table) throw new Error("the table of files is missing");
  const names = new Set<string>();
  let after: Key | null = null;
  for (;;) {
    const rows: Row[] = source.rows(table, { after, upTo: null }, BATCH_ROWS);
    const last = rows.at(-1);
    if (!last) return names;
    for (const { blob, status } of rows) if (status === "ready") names.add(String(blob));
    after = table.key.map((column) => String(last[column]));
  }
}

/** How many of these objects the storage lacks. It is listed once: asking for each takes far longer. */
export async function countMissing(names: ReadonlySet<string>, files: FileStorage | null) {
  if (names.size === 0) return 0;
  const lost = new Set(names);
  const storage = await existingBlobs(files);
  if (storage) for await (const { name } of storage.list()) lost.delete(name);
  return lost.size;
}

const noStorage = (folder: string) =>
  new ConfigError(
    `${folder} has files of people. Set PARLEY_FILES to where they are kept from now on: disk:<folder> or s3://<bucket>.`,
  );
