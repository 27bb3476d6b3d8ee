import { accessSync, constants, existsSync, readdirSync, type Stats, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Config } from "../../config/config.ts";
import { fileProblem } from "../../config/error.ts";
import { type Check, capital, failed, ok, warning } from "./check.ts";

/** Below this a server may fail within minutes: the write-ahead log alone takes 128 MiB, at times more. */
const SCARCE_BYTES = 300e6;
const COMFORTABLE_BYTES = 1e9;
/** Numbers of file systems on which SQLite's write-ahead log does not work: NFS, SMB, CIFS. */
const NETWORK_FILE_SYSTEMS = [0x6969, 0x517b, 0xff534d42, 0xfe534d42];

/** The data folder has the database, unless that is in PostgreSQL, and secrets that are not settings. */
export async function checkDataFolder({ dataDir, database, masterKeys }: Config): Promise<Check[]> {
  const folder = resolve(dataDir);
  if (database && masterKeys) return [];
  if (!existsSync(folder)) return [missingFolder(folder)];
  const found = statSync(folder);
  if (!found.isDirectory()) {
    return [failed("data folder", `${folder} is not a folder`, "Set PARLEY_DATA to a folder.")];
  }
  return [
    checkAccess(folder, found),
    ...checkFiles(folder, found),
    ...(database ? [] : await checkDisk(folder)),
  ];
}

function missingFolder(folder: string): Check {
  const parent = dirname(folder);
  if (canWrite(existsSync(parent) ? parent : dirname(parent))) {
    return warning(
      "data folder",
      `${folder} does not exist`,
      "The server creates it. If it ran before, set PARLEY_DATA to its folder.",
    );
  }
  return failed(
    "data folder",
    `${folder} does not exist and cannot be created`,
    `Create it, and give it to the user of the server: chown <user> ${folder}`,
  );
}

function checkAccess(folder: string, { uid, mode }: Stats): Check {
  const name = "data folder";
  const problem = accessProblem(folder, constants.W_OK | constants.X_OK);
  if (problem) {
    return failed(
      name,
      `${folder} cannot be written`,
      `${capital(problem)}. It is of user ${uid}.`,
    );
  }
  if ((mode & 0o077) !== 0) {
    return warning(name, `${folder} can be read by other users`, `Run: chmod 700 ${folder}`);
  }
  return ok(name, folder);
}

const OWN_FILES = /^(parley.*\.db(-wal|-shm|-mark)?|master\.key|invite-code|lock)$/;

/** Files must belong to the user of the server, who owns the folder, and to nobody else. */
function checkFiles(folder: string, { uid }: Stats): Check[] {
  const files = readdirSync(folder)
    .filter((name) => OWN_FILES.test(name))
    .map((name) => ({ name, ...stateOf(join(folder, name)) }));
  const foreign = files.filter((file) => file.uid !== uid).map(({ name }) => name);
  const open = files.filter(({ mode }) => (mode & 0o077) !== 0).map(({ name }) => name);
  const unusable = files.filter((file) => file.uid === uid && file.problem !== null);
  const checks: Check[] = [];
  if (unusable.length > 0) {
    const message = `${unusable.map(({ name }) => name).join(", ")} cannot be written`;
    checks.push(failed("file permissions", message, `${capital(unusable[0]?.problem ?? "")}.`));
  }
  if (foreign.length > 0) {
    const message = `${foreign.join(", ")} do not belong to the owner of the folder`;
    checks.push(failed("file permissions", message, `Run: chown -R ${uid} ${folder}`));
  }
  if (open.length > 0) {
    const message = `${open.join(", ")} can be read by other users`;
    checks.push(
      failed(
        "file permissions",
        message,
        `Run: chmod 600 ${open.map((name) => join(folder, name)).join(" ")}`,
      ),
    );
  }
  if (checks.length > 0) return checks;
  return [
    ok("file permissions", files.length === 0 ? "none yet" : `${files.length} files, private`),
  ];
}

function stateOf(path: string) {
  const found = statSync(path, { throwIfNoEntry: false });
  // Removed since the folder was listed, such as the log of a server that stops.
  if (!found) return { uid: process.getuid?.(), mode: 0, problem: null };
  const problem = accessProblem(path, constants.R_OK | constants.W_OK);
  return { uid: found.uid, mode: found.mode, problem };
}

async function checkDisk(folder: string): Promise<Check[]> {
  const { type, bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
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

const gigabytes = (bytes: number) =>
  `${(bytes / 1e9).toLocaleString("en-GB", { maximumFractionDigits: 2 })} GB`;

const canWrite = (folder: string) =>
  accessProblem(folder, constants.W_OK | constants.X_OK) === null;

/** Why this user may not use the file so, and the remedy. Null: they may. */
function accessProblem(path: string, mode: number): string | null {
  try {
    accessSync(path, mode);
    return null;
  } catch (error) {
    return fileProblem(error);
  }
}
