import { chmodSync, closeSync, existsSync, openSync, statSync } from "node:fs";

const OWNER_ONLY = 0o600;

/**
 * Makes sure that nobody but the owner reads a database and what SQLite keeps beside it, whatever the
 * umask and the mode of the folder. SQLite gives new files beside a database the mode of the database.
 *
 * A file that exists is never opened here: closing it would drop the locks that SQLite holds on it for
 * its other connections in this process (POSIX locks belong to the process), and another process would
 * take the database for unused and delete its log.
 */
export function keepPrivate(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, "a", OWNER_ONLY));
  for (const suffix of ["", "-wal", "-shm"]) restrictToOwner(path + suffix);
}

/** Takes all access from everybody but the owner, if the file is there and ours to change. */
export function restrictToOwner(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  const isOwn = found?.uid === process.getuid?.() || process.getuid?.() === 0;
  if (found && isOwn && (found.mode & 0o077) !== 0) chmodSync(file, OWNER_ONLY);
}
