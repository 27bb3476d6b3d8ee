import { accessSync, constants, existsSync, readdirSync, type Stats, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { existingBlobs } from "../../compose/backends.ts";
import type { Config } from "../../config/config.ts";
import { fileProblem } from "../../config/setting.ts";
import { isEmpty } from "../../files/mount.ts";
import { reasonOf } from "../output.ts";
import { type Check, capital, failed, ok, warning } from "./check.ts";
import { readStored } from "./store.ts";

const FOLDER = "data folder";
const PERMISSIONS = "file permissions";
const FILES = "files";

/** Below this a server may fail within minutes: the write-ahead log alone takes 128 MiB, at times more. */
const SCARCE_BYTES = 300e6;
const COMFORTABLE_BYTES = 1e9;
/** Room for forty of the largest uploads by default. */
const SCARCE_FILE_BYTES = 1e9;
/** Numbers of file systems on which SQLite's write-ahead log does not work: NFS, SMB, CIFS. */
const NETWORK_FILE_SYSTEMS = [0x6969, 0x517b, 0xff534d42, 0xfe534d42];

/** The data folder has the database, unless that is in PostgreSQL, and secrets that are not settings. */
export async function checkDataFolder({ dataDir, database, masterKeys }: Config): Promise<Check[]> {
  const folder = resolve(dataDir);
  if (database && masterKeys) return [];
  if (!existsSync(folder)) return [missingFolder(folder)];
  const found = statSync(folder);
  if (!found.isDirectory()) {
    return [failed(FOLDER, `${folder} is not a folder`, "Set PARLEY_DATA to a folder.")];
  }
  return [
    checkAccess(folder, found),
    ...checkOwnFiles(folder, found),
    ...(database ? [] : await checkDisk(folder)),
  ];
}

function missingFolder(folder: string): Check {
  const parent = dirname(folder);
  if (folderProblem(existsSync(parent) ? parent : dirname(parent)) === null) {
    const todo = "The server creates it. If it ran before, set PARLEY_DATA to its folder.";
    return warning(FOLDER, `${folder} does not exist`, todo);
  }
  const todo = `Create it, and give it to the user of the server: chown <user> ${folder}`;
  return failed(FOLDER, `${folder} does not exist and cannot be created`, todo);
}

function checkAccess(folder: string, { uid, mode }: Stats): Check {
  const problem = folderProblem(folder);
  if (problem) {
    const todo = `${capital(problem)}. It is of user ${uid}.`;
    return failed(FOLDER, `${folder} cannot be written`, todo);
  }
  if (isOpen({ mode })) {
    return warning(FOLDER, `${folder} can be read by other users`, `Run: chmod 700 ${folder}`);
  }
  return ok(FOLDER, folder);
}

const OWN_FILES = /^(parley.*\.db(-wal|-shm|-mark)?|master\.key|invite-code|lock)$/;

/** Files must belong to the user of the server, who owns the folder, and to nobody else. */
function checkOwnFiles(folder: string, { uid }: Stats): Check[] {
  const files = readdirSync(folder)
    .filter((name) => OWN_FILES.test(name))
    .map((name) => ({ name, ...stateOf(join(folder, name)) }));
  const problems: Check[] = [];
  const report = (some: typeof files, problem: string, todo: string) => {
    const names = some.map(({ name }) => name).join(", ");
    if (some.length > 0) problems.push(failed(PERMISSIONS, `${names} ${problem}`, todo));
  };
  const unusable = files.filter((file) => file.uid === uid && file.problem !== null);
  report(unusable, "cannot be written", `${capital(unusable[0]?.problem ?? "")}.`);
  const foreign = files.filter((file) => file.uid !== uid);
  report(foreign, "do not belong to the owner of the folder", `Run: chown -R ${uid} ${folder}`);
  const open = files.filter(isOpen);
  const paths = open.map(({ name }) => join(folder, name));
  report(open, "can be read by other users", `Run: chmod 600 ${paths.join(" ")}`);
  if (problems.length > 0) return problems;
  return [ok(PERMISSIONS, files.length === 0 ? "none yet" : `${files.length} files, private`)];
}

const isOpen = ({ mode }: { mode: number }) => (mode & 0o077) !== 0;

function stateOf(path: string) {
  const found = statSync(path, { throwIfNoEntry: false });
  // Removed since the folder was listed, such as the log of a server that stops.
  if (!found) return { uid: process.getuid?.(), mode: 0, problem: null };
  const problem = accessProblem(path, constants.R_OK | constants.W_OK);
  return { uid: found.uid, mode: found.mode, problem };
}

async function checkDisk(folder: string): Promise<Check[]> {
  const { type, free } = await diskOf(folder);
  const size = statSync(join(folder, "parley.db"), { throwIfNoEntry: false })?.size ?? 0;
  const found = `${gigabytes(free)} free, the database has ${gigabytes(size)}`;
  const todo = "Free space, or move the data folder to a larger disk.";
  const space =
    free < SCARCE_BYTES
      ? failed("disk", found, todo)
      : free < Math.max(COMFORTABLE_BYTES, size)
        ? warning("disk", found, todo)
        : ok("disk", found);
  if (!NETWORK_FILE_SYSTEMS.includes(type)) return [space];
  const advice = "Move it to a local disk: SQLite's write-ahead log does not work on it.";
  return [space, failed("file system", `${folder} is on a network file system`, advice)];
}

/** Whether the storage of files can be used. It only reads: S3 is asked for a list. */
export async function checkFileStorage(config: Config): Promise<Check[]> {
  const { files, nats } = config;
  if (!files) return [ok(FILES, nats ? "off: several nodes need PARLEY_FILES" : "off")];
  if (files.kind === "disk") return checkFileFolder(files.folder, config);
  const place = `s3://${files.options.bucket}/${files.options.prefix}`;
  try {
    const blobs = await existingBlobs(files);
    // The first page tells whether address, credentials and rights are correct.
    for await (const _ of blobs?.list() ?? []) break;
    return [ok(FILES, place)];
  } catch (error) {
    const todo = "Check PARLEY_FILES, the credentials, and their right to list objects.";
    return [failed(FILES, `${place} cannot be read: ${reasonOf(error)}`, todo)];
  }
}

async function checkFileFolder(folder: string, config: Config): Promise<Check[]> {
  const existing = existsSync(folder) ? folder : dirname(folder);
  const parent = statSync(existing, { throwIfNoEntry: false });
  // The check of the data folder says what is wrong.
  if (parent && !parent.isDirectory()) return [];
  if (parent && folderProblem(existing, constants.R_OK) !== null) {
    const todo = "Run this as the user of the server, and give that user the folder.";
    return [failed(FILES, `${existing} cannot be written`, todo)];
  }
  if (isEmpty(folder) && (await readStored(config))?.hasFiles) {
    const todo = `Mount its disk, or create the folder ${join(folder, "incoming")} to start without these files.`;
    return [failed(FILES, `${folder} is empty or missing, although people have sent files`, todo)];
  }
  if (!parent) return [ok(FILES, `${folder}, which the server creates`)];
  const { free } = await diskOf(existing);
  const { stored_file_bytes: most } = config.limits;
  const quota = most === 0 ? "" : `, at most ${(most / 1e9).toLocaleString("en-GB")} GB of files`;
  const found = `${folder}, ${gigabytes(free)} free${quota}`;
  if (free > SCARCE_FILE_BYTES) return [ok(FILES, found)];
  return [warning(FILES, found, "Free space, or move the files to a larger disk.")];
}

async function diskOf(folder: string) {
  const { type, bavail, bsize } = await statfs(folder);
  return { type, free: bavail * bsize };
}

const gigabytes = (bytes: number) =>
  `${(bytes / 1e9).toLocaleString("en-GB", { maximumFractionDigits: 2 })} GB`;

const folderProblem = (folder: string, mode = 0) =>
  accessProblem(folder, mode | constants.W_OK | constants.X_OK);

/** Why this user may not use the file so, and the remedy. Null: they may. */
function accessProblem(path: string, mode: number): string | null {
  try {
    accessSync(path, mode);
    return null;
  } catch (error) {
    return fileProblem(error);
  }
}
