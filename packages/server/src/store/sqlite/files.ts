import type { Connection } from "./connection.ts";

/** Deletes the files of a person that no message has, and abandons their blobs. */
export function deleteUnusedFilesOf(db: Connection) {
  const where = "owner_id = ? AND used_at IS NULL";
  const abandon = db.change(
    `INSERT INTO abandoned_blobs (blob) SELECT blob FROM files WHERE ${where} AND blob IS NOT NULL`,
  );
  const remove = db.change(`DELETE FROM files WHERE ${where}`);
  return (ownerId: number): void => {
    abandon.run(ownerId);
    remove.run(ownerId);
  };
}
