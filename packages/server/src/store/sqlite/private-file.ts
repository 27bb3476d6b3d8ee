import { chmodSync, closeSync, openSync, statSync } from "node:fs";

const OWNER_ONLY = 0o600;

/**
 * Makes sure that nobody but the owner reads a database and what SQLite keeps beside it, whatever the
 * umask and the mode of the folder. SQLite gives new files beside a database the mode of the database.
 */
export function keepPrivate(path: string): void {
  closeSync(openSync(path, "a", OWNER_ONLY));
  for (const suffix of ["", "-wal", "-shm"]) restrict(path + suffix);
}

function restrict(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  const isOwn = found?.uid === process.getuid?.() || process.getuid?.() === 0;
  if (found && isOwn && (found.mode & 0o077) !== 0) chmodSync(file, OWNER_ONLY);
}
