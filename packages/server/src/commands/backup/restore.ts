import { existsSync, lstatSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type Config, ConfigError, readConfig } from "../../config/config.ts";
import { INCOMING, NO_OBJECTS, pathOfObject, RESTORING } from "../../files/disk.ts";
import { dataFolder, lockDataFolder } from "../../store/data-folder.ts";
import { NEWEST_SCHEMA } from "../../store/sqlite/migrations.ts";
import { forgetPlace, inspectDatabase } from "../../store/sqlite/snapshot.ts";
import { command } from "../command.ts";
import { reasonOf } from "../output.ts";
import {
  DATABASE,
  digestOf,
  INVITE_CODE,
  MASTER_KEY,
  type Manifest,
  openArchive,
  type Progress,
  verifyArchive,
} from "./archive.ts";
import type { Verified } from "./objects.ts";
import {
  giveToOwnerOf,
  makeFolder,
  percent,
  refusePostgres,
  syncFolder,
  writeNewFile,
  writing,
} from "./support.ts";

export const restore = command({
  name: "restore",
  summary: "Restore a backup into an empty data folder.",
  details: `Verifies the checksums and writes the files to PARLEY_DATA. The folder must be empty, except for
master.key and invite-code, which must be those of the backup if it has them, and no server may use
it. Clients fetch everything again afterwards. For SQLite only.`,
  arguments: { file: 'A file that "parley backup" wrote.' },
  options: {
    check: { type: "boolean", summary: "Only verify the backup. Writes nothing." },
  },
  examples: [
    { line: "restore parley-2030-01-31.tar", summary: "Then start the server." },
    { line: "restore --check parley-2030-01-31.tar", summary: "To test a backup." },
  ],
  async run({ arguments: { file }, options: { check }, progress }) {
    const config = readConfig();
    if (config.database) throw refusePostgres("restore");
    const report = (done: number, total: number) =>
      progress(`${check ? "verifying" : "restoring"} the backup: ${percent(done, total)}`);
    const manifest = check
      ? await explained(file, () => verifyArchive(file, report))
      : await restoreBackup(file, config, report);
    const dataDir = resolve(config.dataDir);
    return {
      json: { restored: !check, data: dataDir, ...manifest },
      text: check
        ? `The backup of ${manifest.created_at} is complete.`
        : nextSteps(dataDir, manifest),
    };
  },
});

/** The database gets its name last: until then no server finds one in the folder. */
async function restoreBackup(file: string, config: Config, report: Progress): Promise<Manifest> {
  const { manifest, files, objects } = await explained(file, () => openArchive(file, report));
  if (manifest.schema > NEWEST_SCHEMA) {
    throw new ConfigError(
      `${file} was made by a newer version of Parley (${manifest.version}). Restore it with that version.`,
    );
  }
  lockDataFolder(config);
  const folder = dataFolder(config);
  const storage = storageFor(config, objects);
  refuseOtherFiles(folder, storage);
  await refuseOtherSecrets(folder, manifest);
  deleteDrafts(folder);
  const missing = files.filter(({ name }) => !existsSync(join(folder, name)));
  try {
    for (const { name, read } of missing) {
      await explained(file, () => writeNewFile(draftOf(folder, name), read));
    }
    const database = draftOf(folder, DATABASE);
    await explained(file, async () => inspectDatabase(database));
    forgetPlace(database);
    if (storage) await explained(file, () => writeObjects(objects, storage));
  } catch (error) {
    deleteDrafts(folder);
    if (storage) emptyDraft(storage);
    throw error;
  }
  if (storage) await writing(storage, () => placeObjects(objects, storage));
  for (const name of readdirSync(folder)) {
    if (name !== "lost+found") giveToOwnerOf(folder, join(folder, name));
  }
  // In the archive the database is first.
  for (const { name } of missing.toReversed()) {
    renameSync(draftOf(folder, name), join(folder, name));
  }
  syncFolder(folder);
  if (storage) deleteDraft(storage);
  return manifest;
}

/** The folder to restore files to; null if the backup has none. */
function storageFor({ files }: Config, objects: readonly Verified[]): string | null {
  if (objects.length === 0) return null;
  if (files?.kind !== "disk") {
    throw new ConfigError(
      "The backup contains files. Set PARLEY_FILES to disk, or to disk:<folder>, and restore it again.",
    );
  }
  refuseStoredFiles(files.folder, objects);
  return files.folder;
}

const DRAFT = ".restoring";
const draftOf = (folder: string, name: string) => join(folder, name + DRAFT);

/** Files that do not belong to a database: a lock, secrets, and what an interrupted restore left. */
const KEPT = new Set(["lock", "lock-journal", "lost+found", MASTER_KEY, INVITE_CODE]);

function refuseOtherFiles(folder: string, storage: string | null): void {
  const inTheWay = readdirSync(folder).filter((name) => {
    const path = resolve(folder, name);
    return !(KEPT.has(name) || name.includes(DRAFT) || path === storage || isEmptyFolder(path));
  });
  if (inTheWay.length === 0) return;
  throw new ConfigError(
    `${folder} is not empty: it has ${inTheWay.slice(0, 3).join(", ")}${inTheWay.length > 3 ? " …" : ""}. Move these files away, or set PARLEY_DATA to another folder.`,
  );
}

const isEmptyFolder = (path: string) =>
  lstatSync(path).isDirectory() && readdirSync(path).length === 0;

/** Secrets that the backup has too must be the same: an interrupted restore may have left them. */
async function refuseOtherSecrets(folder: string, { files }: Manifest): Promise<void> {
  for (const { name, sha256 } of files) {
    const path = join(folder, name);
    if (!existsSync(path) || (await digestOf(path)).sha256 === sha256) continue;
    throw new ConfigError(
      `${folder} has another ${name} than the backup. Move it away, or set PARLEY_DATA to another folder.`,
    );
  }
}

/** Deletes what an interrupted restore left. A link in place of a draft is deleted, not what it points to. */
function deleteDrafts(folder: string): void {
  const drafts = [DATABASE, MASTER_KEY, INVITE_CODE].map((name) => name + DRAFT);
  for (const name of readdirSync(folder)) {
    if (drafts.some((draft) => name.startsWith(draft))) rmSync(join(folder, name));
  }
}

/** Throws if the folder has objects, unless an interrupted restore of this backup has left them. */
function refuseStoredFiles(folder: string, objects: readonly Verified[]): void {
  if (!existsSync(folder)) return;
  const left = new Set(existsSync(objectsDraftOf(folder)) ? objects.map(({ name }) => name) : []);
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
const objectsDraftOf = (folder: string) => join(folder, RESTORING);

async function writeObjects(objects: readonly Verified[], folder: string): Promise<void> {
  const draft = objectsDraftOf(folder);
  await writing(folder, () => rmSync(draft, { recursive: true, force: true }));
  for (const { name, read } of objects) {
    const path = pathOfObject(draft, name);
    await writing(folder, () => makeFolder(dirname(path)));
    await writeNewFile(path, read);
    giveToOwnerOf(folder, path);
  }
}

/** Moves the objects of the draft to their places. The draft stays until `deleteDraft`. */
function placeObjects(objects: readonly Verified[], folder: string): void {
  const draft = objectsDraftOf(folder);
  for (const { name } of objects) {
    const path = pathOfObject(folder, name);
    makeFolder(dirname(path));
    renameSync(pathOfObject(draft, name), path);
  }
  for (const name of readdirSync(draft)) syncFolder(join(folder, name));
  makeFolder(join(folder, INCOMING));
}

/** Ends a restore, after the database got its final name. */
const deleteDraft = (folder: string) =>
  rmSync(objectsDraftOf(folder), { recursive: true, force: true });

/** Ends a failed restore. The draft lets the next one accept what an interrupted one has placed. */
function emptyDraft(folder: string): void {
  if (!existsSync(folder)) return;
  deleteDraft(folder);
  if (readdirSync(folder).some((name) => !NO_OBJECTS.has(name))) makeFolder(objectsDraftOf(folder));
}

/** Says that the backup is the problem, unless what it is restored to is. */
async function explained<Value>(file: string, action: () => Promise<Value>): Promise<Value> {
  if (!existsSync(file)) throw new ConfigError(`There is no file ${file}.`);
  try {
    return await action();
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(`${file} cannot be restored: ${reasonOf(error)}. Use another backup.`);
  }
}

function nextSteps(folder: string, { created_at, files }: Manifest): string {
  const hasKey =
    files.some(({ name }) => name === MASTER_KEY) || existsSync(join(folder, MASTER_KEY));
  return [
    `The backup of ${created_at} is in ${folder}. Next:`,
    !hasKey &&
      `  Copy master.key to ${folder}, or set PARLEY_MASTER_KEY: the backup does not contain it.`,
    "  Start the server. Clients will fetch all conversations again.",
  ]
    .filter(Boolean)
    .join("\n");
}
