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
import { list, type Methods, type Unit } from "./unit.ts";

const IN_LIST = "= ANY($1::uuid[])";

export const fileReads: Methods<keyof FileReads> = {
  files: async (unit, ids) =>
    (await unit.all<FileRow>(`${FILES} WHERE f.uuid ${IN_LIST}`, list(ids))).map(toFileRecord),
  unusedFiles: async (unit, before, limit) => {
    const rows = await unit.all<{ uuid: string }>(UNUSED_FILES, before, limit);
    return rows.map(({ uuid }) => uuid);
  },
  usedBlobs: async (unit, ids) => {
    const sql = `SELECT blob FROM files WHERE blob ${IN_LIST}`;
    return (await unit.all<{ blob: string }>(sql, list(ids))).map(({ blob }) => blob);
  },
  filesOf: async (unit, ownerId, after, limit) => {
    const rows = await unit.all<FileRow>(FILES_OF, ownerId, after, limit);
    return rows.map(toFileRecord);
  },
  storedFiles: (unit, after, limit) => unit.all<StoredFile>(STORED_FILES, after, limit),
  abandonedBlobs: async (unit, limit) => {
    const sql = "SELECT blob FROM abandoned_blobs LIMIT $1";
    return (await unit.all<{ blob: string }>(sql, limit)).map(({ blob }) => blob);
  },
  announcedBytes: async (unit) => {
    const row = await unit.get<{ bytes: number }>(ANNOUNCED_BYTES);
    return row?.bytes ?? 0;
  },
  uploadedBytes: async (unit, ownerId, day) => {
    const row = await unit.get<{ bytes: number }>(
      "SELECT bytes FROM upload_usage WHERE owner_id = $1 AND day = $2",
      ownerId,
      day,
    );
    return row?.bytes ?? 0;
  },
};

export const fileWrites: Methods<keyof FileWrites> = {
  insertFile: async (unit, { id, owner_id, conversation_id, name, size, at }, usage) => {
    await unit.write(INSERT_FILE, id, owner_id, conversation_id, name, size, at);
    await unit.write(COUNT_UPLOAD, usage.person_id, usage.day, usage.bytes);
  },
  finishFile: async (unit, id, content) => {
    const { count } = await unit.write(FINISH_FILE, id, ...contentValues(content));
    return count > 0;
  },
  failFile: async (unit, id) => {
    await unit.write(FAIL_FILE, id);
  },
  attachFiles: async (unit, ids, messageUuid, at) => {
    const { count } = await unit.write(attachFiles(`uuid ${IN_LIST}`), list(ids), messageUuid, at);
    return count === ids.length;
  },
  deleteUnusedFiles: (unit, ids) =>
    deleteFiles(unit, `uuid ${IN_LIST} AND used_at IS NULL`, list(ids)),
  setBlobFound: async (unit, { id, blob, message_uuid }, isFound) => {
    const { count } = await unit.write(
      SET_FILE_STATUS,
      id,
      blob,
      message_uuid,
      isFound ? "ready" : "failed",
    );
    return count > 0;
  },
  forgetBlobs: async (unit, ids) => {
    await unit.write(`DELETE FROM abandoned_blobs WHERE blob ${IN_LIST}`, list(ids));
  },
};

/**
 * Deletes the files for which a condition with one parameter is true, and abandons their blobs. Returns
 * how many files it deleted. One statement, so that a file that a message gets meanwhile keeps its blob.
 */
async function deleteFiles(unit: Unit, where: string, value: string | number): Promise<number> {
  const { count } = await unit.write(
    `WITH deleted AS (
       DELETE FROM files WHERE ${where} RETURNING uuid, blob
     ), abandoned AS (
       INSERT INTO abandoned_blobs (blob) SELECT blob FROM deleted WHERE blob IS NOT NULL
     )
     SELECT uuid FROM deleted`,
    value,
  );
  return count;
}

export const deleteFile = (unit: Unit, id: string) => deleteFiles(unit, "uuid = $1", id);

/** Deletes the files of a person that no message has. */
export const deleteUnusedFilesOf = (unit: Unit, ownerId: number) =>
  deleteFiles(unit, "owner_id = $1 AND used_at IS NULL", ownerId);
