import type { FileRecord } from "../files.ts";

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

/** Selects `StoredFile`s. */
export const STORED_FILES = `SELECT f.uuid AS id, f.blob, f.status, m.uuid AS message_uuid
  FROM files f LEFT JOIN messages m ON m.id = f.message_id WHERE f.blob IS NOT NULL AND f.uuid >`;

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
