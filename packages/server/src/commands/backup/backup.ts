import { closeSync, existsSync, lstatSync, mkdirSync, openSync, rmSync, statSync } from "node:fs";
import { rename, statfs } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { existingBlobs } from "../../compose/backends.ts";
import { type Config, ConfigError, readConfig } from "../../config/config.ts";
import { lockFile, requireDatabase } from "../../store/data-folder.ts";
import { blobsIn, inspectDatabase, snapshotDatabase } from "../../store/sqlite/snapshot.ts";
import { command } from "../command.ts";
import {
  type ArchiveContent,
  DATABASE,
  INVITE_CODE,
  MASTER_KEY,
  type Manifest,
  verifyArchive,
  writeArchive,
} from "./archive.ts";
import type { ObjectFigures } from "./objects.ts";
import { megabytes, percent, refusePostgres, refuseUnwritable, syncFolder } from "./support.ts";

export const backup = command({
  name: "backup",
  summary: "Write a backup of the data folder to a file, while the server runs.",
  details: `Copies a consistent snapshot of the database, the invite code, and the files that people have sent
into one tar file with checksums, and reads it back. Files on S3 are not copied. The master key is
not included unless you ask for it: keep master.key in another place, because with both anybody
can read the provider keys. For SQLite only.`,
  arguments: { file: "The file to write. It must not exist." },
  options: {
    "with-master-key": { type: "boolean", summary: "Include master.key." },
  },
  examples: [
    { line: "backup parley-2030-01-31.tar", summary: "As the user of the server, or as root." },
  ],
  async run({ arguments: { file }, options, progress }) {
    const config = readConfig();
    if (config.database) throw refusePostgres("backup");
    const { manifest, figures } = await writeBackup({
      file: resolve(file),
      files: filesOf(config, options["with-master-key"]),
      storage: config.files?.kind === "disk" ? config.files.folder : null,
      progress,
    });
    const path = resolve(file);
    const { size } = statSync(path);
    return {
      json: { file: path, bytes: size, ...manifest, stored_files: figures },
      text: [textOf(path, size, manifest), filesText(config, figures)].join("\n"),
    };
  },
});

interface Backup {
  readonly file: string;
  readonly files: ArchiveContent["files"];
  /** The folder with the bytes of files; null if they are not on disk. */
  readonly storage: string | null;
  progress(text: string): void;
}

/**
 * Works in a folder beside the file, and gives the file its name when it is complete and verified. A
 * run that was killed leaves that folder, and the next one with the same name replaces it.
 */
async function writeBackup(backup: Backup) {
  const { file, files, storage } = backup;
  refuseUnwritable(file);
  await checkSpace(file, files, storage);
  const folder = openWorkFolder(`${file}.partial`);
  try {
    const archive = join(folder, basename(file));
    const written = await writeVerified(backup, archive, join(folder, DATABASE));
    await rename(archive, file);
    return written;
  } finally {
    rmSync(folder, { recursive: true });
    syncFolder(dirname(file));
  }
}

async function writeVerified(
  { files: [database, ...others], storage, progress }: Backup,
  archive: string,
  snapshot: string,
) {
  const report = (what: string) => (done: number, total: number) =>
    progress(`${what}: ${percent(done, total)}`);
  closeSync(openSync(snapshot, "wx", 0o600));
  await snapshotDatabase({
    from: database?.path ?? "",
    to: snapshot,
    progress: report("copying the database"),
  });
  const files = [{ name: DATABASE, path: snapshot } as const, ...others];
  const content = { ...inspectDatabase(snapshot), files };
  // The rows are copied before the bytes: bytes that arrive meanwhile belong to the next backup.
  const objects = storage === null ? null : { folder: storage, blobs: blobsIn(snapshot) };
  const figures = await writeArchive(
    archive,
    content,
    objects && { ...objects, progress: report("copying files") },
    report("writing the backup"),
  );
  rmSync(snapshot);
  return { manifest: await verifyArchive(archive, report("verifying the backup")), figures };
}

/** The files of the data folder that belong into the backup, the database first. */
function filesOf(config: Config, withMasterKey: boolean): ArchiveContent["files"] {
  const { dataDir, masterKeys } = config;
  const path = (name: string) => resolve(dataDir, name);
  requireDatabase(config);
  if (withMasterKey && (masterKeys || !existsSync(path(MASTER_KEY)))) {
    throw new ConfigError(
      "The data folder has no master.key to include: store the value of PARLEY_MASTER_KEY yourself.",
    );
  }
  const names = [DATABASE, MASTER_KEY, INVITE_CODE] as const;
  const included = names.filter(
    (name) => (name !== MASTER_KEY || withMasterKey) && existsSync(path(name)),
  );
  return included.map((name) => ({ name, path: path(name) }));
}

/** The snapshot and the archive, which contains it, exist at the same time. */
async function checkSpace(file: string, files: ArchiveContent["files"], storage: string | null) {
  const folder = dirname(file);
  const { bavail, bsize } = await statfs(folder);
  const stored = await existingBlobs(storage === null ? null : { kind: "disk", folder: storage });
  let needed = 2 * files.reduce((sum, { path }) => sum + statSync(path).size, 0);
  if (stored) for await (const { size } of stored.list()) needed += size;
  if (bavail * bsize > needed) return;
  throw new ConfigError(
    `${folder} has ${megabytes(bavail * bsize)} free, and the backup needs ${megabytes(needed)} while it is written. Use another disk, or free space.`,
  );
}

function openWorkFolder(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  checkOwnFolder(folder);
  if (!lockFile(join(folder, "lock"))) {
    throw new ConfigError(`Another backup is being written to ${folder}. Wait for it to end.`);
  }
  for (const name of [DATABASE, `${DATABASE}-journal`, basename(folder, ".partial")]) {
    rmSync(join(folder, name), { force: true });
  }
  return folder;
}

/** Others may write to the folder of the backup: what they put there must not direct what is deleted. */
function checkOwnFolder(folder: string): void {
  const found = lstatSync(folder);
  if (found.isDirectory() && found.uid === process.getuid?.()) return;
  throw new ConfigError(
    `${folder} is a link, or belongs to another user. Delete it, or choose another name.`,
  );
}

function filesText({ files }: Config, figures: ObjectFigures | null): string {
  if (files?.kind === "s3") return "Files are on S3, and not in the backup: back up the bucket.";
  if (!figures) return "The server takes no files.";
  const { objects, missing } = figures;
  const lost = missing === 0 ? "" : ` The bytes of ${missing} files were not found.`;
  return `It contains ${objects.toLocaleString("en-GB")} objects of files, previews included.${lost}`;
}

function textOf(file: string, size: number, { accounts, messages, files }: Manifest): string {
  const hasKey = files.some(({ name }) => name === MASTER_KEY);
  const count = (figure: number) => figure.toLocaleString("en-GB");
  return [
    `The backup is complete and verified: ${file}`,
    `${count(accounts)} accounts, ${count(messages)} messages, ${megabytes(size)}.`,
    hasKey
      ? "It contains the master key: whoever has the file can read the provider keys."
      : "It does not contain the master key: keep a copy of it in another place.",
  ].join("\n");
}
