import {
  closeSync,
  existsSync,
  fsyncSync,
  lchownSync,
  mkdirSync,
  openSync,
  statSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { ConfigError } from "../../config/config.ts";
import { fileProblem } from "../../config/setting.ts";
import type { Awaitable } from "../../store/awaitable.ts";
import { writeAll } from "./tar.ts";

const POSTGRES_TOOLS = {
  backup: `Back it up with its own tools, while the nodes run:
  pg_dump --format=custom --file=parley.dump "$DATABASE_URL"
Then back up the files, where PARLEY_FILES keeps them. Keep PARLEY_MASTER_KEY in another place.`,
  restore: `Stop all nodes and restore it with its own tools:
  pg_restore --clean --if-exists --dbname="$DATABASE_URL" parley.dump
Then start the nodes with the same PARLEY_MASTER_KEY.`,
};

/** Why a command for SQLite does not run, and what to run instead. */
export const refusePostgres = (task: keyof typeof POSTGRES_TOOLS) =>
  new ConfigError(`DATABASE_URL is set: the data is in PostgreSQL. ${POSTGRES_TOOLS[task]}`);

export const percent = (done: number, total: number) =>
  `${Math.min(100, Math.floor((100 * done) / Math.max(total, 1)))} %`;

export const megabytes = (bytes: number) =>
  `${(bytes / 1e6).toLocaleString("en-GB", { maximumFractionDigits: 1 })} MB`;

/** Makes a new or renamed file survive a power cut: its entry is in the folder. */
export function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  fsyncSync(folder);
  closeSync(folder);
}

/** Refuses the path of a file that exists, or that is in no folder. */
export function refuseUnwritable(file: string): void {
  if (existsSync(file)) throw new ConfigError(`${file} exists. Choose another name, or delete it.`);
  const folder = dirname(file);
  if (!existsSync(folder)) throw new ConfigError(`There is no folder ${folder}. Create it first.`);
}

/** Says which file or folder cannot be written. */
export async function writing<Value>(path: string, action: () => Awaitable<Value>): Promise<Value> {
  try {
    return await action();
  } catch (error) {
    throw new ConfigError(`${path} cannot be written: ${fileProblem(error)}.`);
  }
}

/** Never writes to a file that exists: others may be able to create files in the folder. */
export async function writeNewFile(
  path: string,
  read: (write: (chunk: Uint8Array) => Promise<unknown>) => Promise<void>,
): Promise<void> {
  await using target = await writing(path, () => open(path, "wx", 0o600));
  await read((chunk) => writing(path, () => writeAll(target, chunk)));
  await writing(path, () => target.sync());
}

/** Makes a folder, and those that it is in, if they do not exist. */
export function makeFolder(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  makeFolder(parent);
  mkdirSync(path, { mode: 0o700 });
  giveToOwnerOf(parent, path);
  syncFolder(parent);
}

/** If root restores, the server's user, who owns the folder, must be able to open what is in it. */
export function giveToOwnerOf(folder: string, path: string): void {
  const { uid, gid } = statSync(folder);
  if (process.getuid?.() === 0 && uid !== 0) lchownSync(path, uid, gid);
}
