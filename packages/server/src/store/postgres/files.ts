import type { FileReads, FileWrites, StoredFile } from "../files.ts";
import { FILES, type FileRow, STORED_FILES, toFileRecord } from "../shared/files.ts";
import { list, type Methods, type Unit } from "./unit.ts";

const IN_LIST = "= ANY($1::uuid[])";

export const fileReads: Methods<keyof FileReads> = {
  files: async (unit, ids) =>
    (await unit.all<FileRow>(`${FILES} WHERE f.uuid ${IN_LIST}`, list(ids))).map(toFileRecord),
  unusedFiles: async (unit, before, limit) => {
    const rows = await unit.all<{ uuid: string }>(
      "SELECT uuid FROM files WHERE used_at IS NULL AND created_at < $1 ORDER BY created_at LIMIT $2",
      before,
      limit,
    );
    return rows.map(({ uuid }) => uuid);
  },
  usedBlobs: async (unit, ids) => {
    const sql = `SELECT blob FROM files WHERE blob ${IN_LIST}`;
    return (await unit.all<{ blob: string }>(sql, list(ids))).map(({ blob }) => blob);
  },
  filesOf: async (unit, ownerId, after, limit) => {
    const rows = await unit.all<FileRow>(
      `${FILES} WHERE f.owner_id = $1 AND f.uuid > $2 AND f.status = 'ready'
       ORDER BY f.uuid LIMIT $3`,
      ownerId,
      after,
      limit,
    );
    return rows.map(toFileRecord);
  },
  storedFiles: (unit, after, limit) =>
    unit.all<StoredFile>(`${STORED_FILES} $1 ORDER BY f.uuid LIMIT $2`, after, limit),
  abandonedBlobs: async (unit, limit) => {
    const sql = "SELECT blob FROM abandoned_blobs LIMIT $1";
    return (await unit.all<{ blob: string }>(sql, limit)).map(({ blob }) => blob);
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
    await unit.change(
      `INSERT INTO files (uuid, owner_id, conversation_id, name, size, created_at)
       VALUES ($1, $2, $3, $4, $5, $6)`,
      id,
      owner_id,
      conversation_id,
      name,
      size,
      at,
    );
    await unit.change(
      `INSERT INTO upload_usage AS u (owner_id, day, bytes) VALUES ($1, $2, $3)
       ON CONFLICT (owner_id, day) DO UPDATE SET bytes = u.bytes + excluded.bytes`,
      usage.person_id,
      usage.day,
      usage.bytes,
    );
  },
  finishFile: async (unit, id, content) => {
    const { count } = await unit.change(
      `UPDATE files SET status = 'ready', blob = $2, type = $3, size = $4, width = $5, height = $6,
         duration_ms = $7, placeholder = $8
       WHERE uuid = $1 AND status <> 'ready' AND used_at IS NULL`,
      id,
      content.blob,
      content.type,
      content.size,
      content.width,
      content.height,
      content.duration_ms,
      content.placeholder,
    );
    return count > 0;
  },
  failFile: async (unit, id) => {
    await unit.change(
      "UPDATE files SET status = 'failed' WHERE uuid = $1 AND status <> 'ready'",
      id,
    );
  },
  attachFiles: async (unit, ids, messageUuid, at) => {
    const { count } = await unit.change(
      `UPDATE files SET used_at = $3, message_id = (SELECT id FROM messages WHERE uuid = $2)
       WHERE uuid ${IN_LIST} AND used_at IS NULL AND status = 'ready'`,
      list(ids),
      messageUuid,
      at,
    );
    return count === ids.length;
  },
  deleteUnusedFiles: async (unit, ids) => {
    const { count } = await unit.change(deleteUnused(`uuid ${IN_LIST}`), list(ids));
    return count;
  },
  setBlobFound: async (unit, { id, blob, message_uuid }, isFound) => {
    const { count } = await unit.change(
      `UPDATE files SET status = $4 WHERE uuid = $1 AND blob = $2
         AND message_id IS NOT DISTINCT FROM (SELECT id FROM messages WHERE uuid = $3)`,
      id,
      blob,
      message_uuid,
      isFound ? "ready" : "failed",
    );
    return count > 0;
  },
  forgetBlobs: async (unit, ids) => {
    await unit.change(`DELETE FROM abandoned_blobs WHERE blob ${IN_LIST}`, list(ids));
  },
};

/** Deletes the files of a message, and abandons their blobs. */
export async function deleteFilesOf(unit: Unit, messageId: number): Promise<void> {
  await unit.change(
    `WITH deleted AS (DELETE FROM files WHERE message_id = $1 RETURNING blob)
     INSERT INTO abandoned_blobs (blob) SELECT blob FROM deleted`,
    messageId,
  );
}

/** Deletes the files of a person that no message has, and abandons their blobs. */
export async function deleteUnusedFilesOf(unit: Unit, ownerId: number): Promise<void> {
  await unit.change(deleteUnused("owner_id = $1"), ownerId);
}

/** One statement, so that a file that a message gets meanwhile keeps its blob. */
const deleteUnused = (where: string) => `WITH deleted AS (
    DELETE FROM files WHERE ${where} AND used_at IS NULL RETURNING uuid, blob
  ), abandoned AS (
    INSERT INTO abandoned_blobs (blob) SELECT blob FROM deleted WHERE blob IS NOT NULL
  )
  SELECT uuid FROM deleted`;
