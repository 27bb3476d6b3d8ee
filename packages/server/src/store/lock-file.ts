import { Database, SQLiteError } from "bun:sqlite";
import { ConfigError } from "../config/error.ts";
import { keepPrivate } from "./private-file.ts";

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
    throw new ConfigError(`${path} cannot be locked: ${String(error)}.`);
  }
}
