import { Database, SQLiteError } from "bun:sqlite";
import { accessSync, constants, existsSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Config, ConfigError } from "../config/config.ts";
import { fileProblem } from "../config/setting.ts";
import { keepPrivate, restrictToOwner } from "./private-file.ts";

/** The path of the data folder. Creates it if it does not exist. */
export function dataFolder({ dataDir }: Config): string {
  const folder = resolve(dataDir);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK | constants.X_OK);
    return folder;
  } catch (error) {
    const isFile = (error as { code?: string }).code === "EEXIST";
    const problem = isFile ? "it is a file: name a folder" : fileProblem(error);
    throw new ConfigError(
      `PARLEY_DATA must be a folder that can be written, not "${folder}": ${problem}.`,
    );
  }
}

/** Throws if there is no database. Whoever forgot to name the data folder would get a new one. */
export function requireDatabase({ dataDir }: Config): void {
  const path = resolve(dataDir, "parley.db");
  if (existsSync(path) || existsSync(`${path}-mark`)) return;
  throw new ConfigError(
    `There is no database in ${resolve(dataDir)}. Set PARLEY_DATA to the data folder of the server.`,
  );
}

/** The path of a secret in the data folder. Makes a file that others can read private. */
export function secretFile(config: Config, name: string): string {
  const file = join(dataFolder(config), name);
  restrictToOwner(file);
  return file;
}

/** Throws when another server uses the folder. */
export function lockDataFolder(config: Config): void {
  if (!lockFile(join(dataFolder(config), "lock"))) {
    throw new ConfigError(`PARLEY_DATA is in use by another server: ${resolve(config.dataDir)}.`);
  }
}

/** Whether a server uses the folder. */
export function isInUse({ dataDir }: Config): boolean {
  const lock = resolve(dataDir, "lock");
  return existsSync(lock) && !lockFile(lock);
}

/** Keeps the lock until the process ends: the operating system releases it in any case. */
let held: Database | null = null;

/** Locks a file for this process. Returns false when another process has locked it. */
export function lockFile(path: string): boolean {
  keepPrivate(path);
  const lock = new Database(path, { create: true });
  try {
    lock.run("PRAGMA locking_mode = EXCLUSIVE");
    lock.run("BEGIN EXCLUSIVE");
    held = lock;
    return held !== null;
  } catch (error) {
    lock.close();
    if (error instanceof SQLiteError && error.code === "SQLITE_BUSY") return false;
    throw new ConfigError(`PARLEY_DATA: ${path} cannot be locked: ${fileProblem(error)}.`);
  }
}
