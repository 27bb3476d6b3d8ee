import type { Connection } from "./connection.ts";

/**
 * Returns a function that deletes the files for which a condition with one parameter is true, abandons
 * their blobs, and returns how many files it deleted.
 */
export function deleteFiles(db: Connection, where: string) {
  const abandon = db.change(
    `INSERT INTO abandoned_blobs (blob) SELECT blob FROM files WHERE ${where} AND blob IS NOT NULL`,
  );
  const remove = db.change(`DELETE FROM files WHERE ${where}`);
  return (value: string | number): number => {
    abandon.run(value);
    return remove.run(value).changes;
  };
}

/** Deletes the files of a person that no message has. */
export const deleteUnusedFilesOf = (db: Connection) =>
  deleteFiles(db, "owner_id = ? AND used_at IS NULL");
