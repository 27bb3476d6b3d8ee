import type { FileReads, FileWrites, StoredFile } from "../files.ts";
import {
  ANNOUNCED_BYTES,
  attachFiles,
  COUNT_UPLOAD,
  contentValues,
  FAIL_FILE,
  FILES,
  FILES_OF,
  FINISH_FILE,
  type FileRow,
  INSERT_FILE,
  SET_FILE_STATUS,
  STORED_FILES,
  toFileRecord,
  UNUSED_FILES,
} from "../shared/files.ts";
import type { Connection } from "./connection.ts";

const IN_LIST = "IN (SELECT value FROM json_each($1))";

export function fileReads(db: Connection): FileReads {
  const files = db.query<FileRow>(`${FILES} WHERE f.uuid ${IN_LIST}`);
  const unused = db.query<{ uuid: string }>(UNUSED_FILES);
  const usedBlobs = db.query<{ blob: string }>(`SELECT blob FROM files WHERE blob ${IN_LIST}`);
  const owned = db.query<FileRow>(FILES_OF);
  const stored = db.query<StoredFile>(STORED_FILES);
  const abandoned = db.query<{ blob: string }>("SELECT blob FROM abandoned_blobs LIMIT ?");
  const announced = db.query<{ bytes: number }>(ANNOUNCED_BYTES);
  const uploaded = db.query<{ bytes: number }>(
    "SELECT bytes FROM upload_usage WHERE owner_id = ? AND day = ?",
  );
  return {
    files: (ids) => files.all(JSON.stringify(ids)).map(toFileRecord),
    unusedFiles: (before, limit) => unused.all(before, limit).map(({ uuid }) => uuid),
    usedBlobs: (ids) => usedBlobs.all(JSON.stringify(ids)).map(({ blob }) => blob),
    filesOf: (ownerId, after, limit) => owned.all(ownerId, after, limit).map(toFileRecord),
    storedFiles: (after, limit) => stored.all(after, limit),
    abandonedBlobs: (limit) => abandoned.all(limit).map(({ blob }) => blob),
    announcedBytes: () => announced.get()?.bytes ?? 0,
    uploadedBytes: (ownerId, day) => uploaded.get(ownerId, day)?.bytes ?? 0,
  };
}

export function fileWrites(db: Connection): FileWrites {
  const insert = db.change(INSERT_FILE);
  const count = db.change(COUNT_UPLOAD);
  const finish = db.change(FINISH_FILE);
  const fail = db.change(FAIL_FILE);
  const attach = db.change(attachFiles(`uuid ${IN_LIST}`));
  const removeUnused = deleteFiles(db, `uuid ${IN_LIST} AND used_at IS NULL`);
  const setStatus = db.change(SET_FILE_STATUS);
  const forget = db.change(`DELETE FROM abandoned_blobs WHERE blob ${IN_LIST}`);
  return {
    insertFile: ({ id, owner_id, conversation_id, name, size, at }, usage) => {
      insert.run(id, owner_id, conversation_id, name, size, at);
      count.run(usage.person_id, usage.day, usage.bytes);
    },
    finishFile: (id, content) => finish.run(id, ...contentValues(content)).changes > 0,
    failFile: (id) => void fail.run(id),
    attachFiles: (ids, messageUuid, at) =>
      attach.run(JSON.stringify(ids), messageUuid, at).changes === ids.length,
    deleteUnusedFiles: (ids) => removeUnused(JSON.stringify(ids)),
    setBlobFound: ({ id, blob, message_uuid }, isFound) =>
      setStatus.run(id, blob, message_uuid, isFound ? "ready" : "failed").changes > 0,
    forgetBlobs: (ids) => void forget.run(JSON.stringify(ids)),
  };
}

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
