import type { FileContent, FileRecord } from "../files.ts";

export interface FileRow extends Omit<FileRecord, "used" | "owner_state"> {
  used_at: number | null;
  suspended_at: number | null;
  erased_at: number | null;
}

/** Selects `FileRow`s. */
export const FILES = `SELECT f.uuid AS id, f.owner_id, c.uuid AS conversation_uuid, f.blob, f.name,
    f.type, f.size, f.width, f.height, f.duration_ms, f.status, f.placeholder, f.used_at,
    f.created_at, o.suspended_at, o.erased_at, m.uuid AS message_uuid
  FROM files f LEFT JOIN messages m ON m.id = f.message_id LEFT JOIN conversations c ON c.id = f.conversation_id JOIN accounts o ON o.id = f.owner_id`;

export const FILES_OF = `${FILES} WHERE f.owner_id = $1 AND f.uuid > $2 AND f.status = 'ready'
  ORDER BY f.uuid LIMIT $3`;

/** Selects `StoredFile`s. */
export const STORED_FILES = `SELECT f.uuid AS id, f.blob, f.status, m.uuid AS message_uuid
  FROM files f LEFT JOIN messages m ON m.id = f.message_id
  WHERE f.blob IS NOT NULL AND f.uuid > $1 ORDER BY f.uuid LIMIT $2`;

export const ANNOUNCED_BYTES = "SELECT CAST(coalesce(sum(size), 0) AS bigint) AS bytes FROM files";

export const UNUSED_FILES =
  "SELECT uuid FROM files WHERE used_at IS NULL AND created_at < $1 ORDER BY created_at LIMIT $2";

export const INSERT_FILE = `INSERT INTO files
    (uuid, owner_id, conversation_id, name, size, created_at)
  VALUES ($1, $2, $3, $4, $5, $6)`;

export const COUNT_UPLOAD = `INSERT INTO upload_usage (owner_id, day, bytes) VALUES ($1, $2, $3)
  ON CONFLICT (owner_id, day) DO UPDATE SET bytes = upload_usage.bytes + excluded.bytes`;

export const FINISH_FILE = `UPDATE files SET status = 'ready', blob = $2, type = $3, size = $4,
    width = $5, height = $6, duration_ms = $7, placeholder = $8
  WHERE uuid = $1 AND status <> 'ready' AND used_at IS NULL`;

/** The parameters of `FINISH_FILE` after the id. */
export const contentValues = (content: FileContent) => [
  content.blob,
  content.type,
  content.size,
  content.width,
  content.height,
  content.duration_ms,
  content.placeholder,
];

export const FAIL_FILE = "UPDATE files SET status = 'failed' WHERE uuid = $1 AND status <> 'ready'";

/** Gives the files for which a condition with parameter 1 is true to a message. */
export const attachFiles = (isGiven: string) => `UPDATE files SET used_at = $3,
    message_id = (SELECT id FROM messages WHERE uuid = $2)
  WHERE ${isGiven} AND used_at IS NULL AND status = 'ready'`;

/** Makes a file the picture of an account, or of the conversation, parameter 3. */
export const USE_PICTURE = `UPDATE files SET used_at = $2, conversation_id = $3
  WHERE uuid = $1 AND used_at IS NULL AND status = 'ready' AND conversation_id IS NULL`;

export const SET_FILE_STATUS = `UPDATE files SET status = $4 WHERE uuid = $1 AND blob = $2
  AND message_id IS NOT DISTINCT FROM (SELECT id FROM messages WHERE uuid = $3)`;

export const ANY_STORED_FILE = "SELECT 1 FROM files WHERE blob IS NOT NULL LIMIT 1";

export const toFileRecord = ({
  used_at,
  suspended_at,
  erased_at,
  ...row
}: FileRow): FileRecord => ({
  ...row,
  used: used_at !== null,
  owner_state: erased_at !== null ? "erased" : suspended_at !== null ? "suspended" : "active",
});
