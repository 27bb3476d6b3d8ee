import { Database } from "bun:sqlite";
import { keepPrivate } from "./private-file.ts";

/** Held for as long as the process lives: the system lets go of it however the process ends. */
let held: Database | null = null;

/** Whether this process is now the one that holds the file. */
export function lockFile(path: string): boolean {
  keepPrivate(path);
  const lock = new Database(path, { create: true });
  try {
    lock.run("PRAGMA locking_mode = EXCLUSIVE");
    lock.run("BEGIN EXCLUSIVE");
    held = lock;
    return held !== null;
  } catch {
    lock.close();
    return false;
  }
}
