import type { FileReads, FileWrites, StoredFile } from "../files.ts";
import { FILES, type FileRow, STORED_FILES, toFileRecord } from "../shared/files.ts";
import type { Connection } from "./connection.ts";

const IN_LIST = "IN (SELECT value FROM json_each(?1))";

export function fileReads(db: Connection): FileReads {
  const files = db.query<FileRow>(`${FILES} WHERE f.uuid ${IN_LIST}`);
  const unused = db.query<{ uuid: string }>(
    "SELECT uuid FROM files WHERE used_at IS NULL AND created_at < ? ORDER BY created_at LIMIT ?",
  );
  const usedBlobs = db.query<{ blob: string }>(`SELECT blob FROM files WHERE blob ${IN_LIST}`);
  const owned = db.query<FileRow>(
    `${FILES} WHERE f.owner_id = ? AND f.uuid > ? AND f.status = 'ready' ORDER BY f.uuid LIMIT ?`,
  );
  const stored = db.query<StoredFile>(`${STORED_FILES} ? ORDER BY f.uuid LIMIT ?`);
  const abandoned = db.query<{ blob: string }>("SELECT blob FROM abandoned_blobs LIMIT ?");
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
    uploadedBytes: (ownerId, day) => uploaded.get(ownerId, day)?.bytes ?? 0,
  };
}

export function fileWrites(db: Connection): FileWrites {
  const insert = db.change(
    `INSERT INTO files (uuid, owner_id, conversation_id, name, size, created_at)
     VALUES (?, ?, ?, ?, ?, ?)`,
  );
  const count = db.change(
    `INSERT INTO upload_usage (owner_id, day, bytes) VALUES (?, ?, ?)
     ON CONFLICT (owner_id, day) DO UPDATE SET bytes = bytes + excluded.bytes`,
  );
  const finish = db.change(
    `UPDATE files SET status = 'ready', blob = ?2, type = ?3, size = ?4, width = ?5, height = ?6,
       duration_ms = ?7, placeholder = ?8
     WHERE uuid = ?1 AND status <> 'ready' AND used_at IS NULL`,
  );
  const fail = db.change("UPDATE files SET status = 'failed' WHERE uuid = ? AND status <> 'ready'");
  const attach = db.change(
    `UPDATE files SET used_at = ?3, message_id = (SELECT id FROM messages WHERE uuid = ?2)
     WHERE uuid ${IN_LIST} AND used_at IS NULL AND status = 'ready'`,
  );
  const abandon = db.change(
    `INSERT INTO abandoned_blobs (blob) SELECT blob FROM files
     WHERE uuid ${IN_LIST} AND used_at IS NULL AND blob IS NOT NULL`,
  );
  const remove = db.change(`DELETE FROM files WHERE uuid ${IN_LIST} AND used_at IS NULL`);
  const setStatus = db.change(
    `UPDATE files SET status = ?4 WHERE uuid = ?1 AND blob = ?2
     AND message_id IS (SELECT id FROM messages WHERE uuid = ?3)`,
  );
  const forget = db.change(`DELETE FROM abandoned_blobs WHERE blob ${IN_LIST}`);
  return {
    insertFile: ({ id, owner_id, conversation_id, name, size, at }, usage) => {
      insert.run(id, owner_id, conversation_id, name, size, at);
      count.run(usage.person_id, usage.day, usage.bytes);
    },
    finishFile: (id, { blob, type, size, width, height, duration_ms, placeholder }) =>
      finish.run(id, blob, type, size, width, height, duration_ms, placeholder).changes > 0,
    failFile: (id) => void fail.run(id),
    attachFiles: (ids, messageUuid, at) =>
      attach.run(JSON.stringify(ids), messageUuid, at).changes === ids.length,
    deleteUnusedFiles: (ids) => {
      const list = JSON.stringify(ids);
      abandon.run(list);
      return remove.run(list).changes;
    },
    setBlobFound: ({ id, blob, message_uuid }, isFound) =>
      setStatus.run(id, blob, message_uuid, isFound ? "ready" : "failed").changes > 0,
    forgetBlobs: (ids) => void forget.run(JSON.stringify(ids)),
  };
}

/** Deletes the files of a person that no message has, and abandons their blobs. */
export function deleteUnusedFilesOf(db: Connection, ownerId: number): void {
  db.change(
    `INSERT INTO abandoned_blobs (blob) SELECT blob FROM files
     WHERE owner_id = ? AND used_at IS NULL AND blob IS NOT NULL`,
  ).run(ownerId);
  db.change("DELETE FROM files WHERE owner_id = ? AND used_at IS NULL").run(ownerId);
}
