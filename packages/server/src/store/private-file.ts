import { chmodSync, closeSync, existsSync, openSync, statSync } from "node:fs";

const OWNER_ONLY = 0o600;

/**
 * Makes a database and SQLite's files beside it readable for their owner alone, whatever the umask and
 * the mode of the folder. SQLite creates files beside a database with the mode of the database.
 *
 * An existing file is never opened here: closing it would release the locks of SQLite's other
 * connections in this process (POSIX locks belong to the process), and another process would consider
 * the database unused and delete its log.
 */
export function keepPrivate(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, "a", OWNER_ONLY));
  for (const suffix of ["", "-wal", "-shm"]) restrictToOwner(path + suffix);
}

/** Removes all access but the owner's, if the file exists and this process may change it. */
export function restrictToOwner(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  const isOwn = found?.uid === process.getuid?.() || process.getuid?.() === 0;
  if (found && isOwn && (found.mode & 0o077) !== 0) chmodSync(file, OWNER_ONLY);
}
