import type { Account, File } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../rules/accounts.ts";
import { iso } from "../rules/time.ts";
import { publicAccountAs } from "./account-records.ts";
import { clearedIn, notHidden } from "./message-views.ts";
import { type Fragment, reader, type Sql, sql } from "./sql.ts";

/** Files that people have announced or uploaded. Their bytes are kept elsewhere, by the id of the blob. */
export const fileReads = {
  /** The files with one of these ids, in no particular order. */
  files: (db: Sql, ids: readonly string[]) =>
    db.allAs(readFile)`${FILES} WHERE f.uuid = ANY(${ids}::uuid[])`,
  /** Messages with files in a range of a conversation that the viewer can see, newest first. */
  async messagesWithFiles(db: Sql, query: FilesQuery): Promise<MessageFiles[]> {
    const { conversationId, viewerId, after, upTo, limit } = query;
    // Found by the index of `files`: reading the wide rows of all messages takes longer.
    const found = await db.allAs(readMessageFiles)`
      SELECT m.uuid AS message_id, m.seq, m.created_at,
        coalesce(m.files, '[]'::jsonb) AS files, ${publicAccountAs("sender")}
      FROM messages m JOIN accounts a ON a.id = m.sender_id
      WHERE m.conversation_id = ${conversationId} AND m.seq > ${after} AND m.seq <= ${upTo}
        AND m.deleted_at IS NULL AND EXISTS (SELECT 1 FROM files f WHERE f.message_id = m.id)
        AND ${notHidden(viewerId)} AND m.seq > ${clearedIn(conversationId, viewerId)}
      ORDER BY m.seq DESC LIMIT ${limit}`;
    return found.map(({ sender, created_at, ...message }) => ({
      ...message,
      sender: publicAccount(sender),
      sent_at: iso(created_at),
    }));
  },
  /** The ids of files that nothing uses and that were announced before a time, oldest first. */
  unusedFiles: (db: Sql, before: number, limit: number) =>
    db.column<string>`
      SELECT uuid FROM files WHERE used_at IS NULL AND created_at < ${before}
      ORDER BY created_at LIMIT ${limit}`,
  /** The subset of these blobs that belong to a file. */
  usedBlobs: (db: Sql, ids: readonly string[]) =>
    db.column<string>`SELECT blob FROM files WHERE blob = ANY(${ids}::uuid[])`,
  /** Files of a person that are ready and have an id after this one, ordered by id. */
  filesOf: (db: Sql, ownerId: number, after: string, limit: number) =>
    db.allAs(readFile)`
      ${FILES} WHERE f.owner_id = ${ownerId} AND f.uuid > ${after} AND f.status = 'ready'
      ORDER BY f.uuid LIMIT ${limit}`,
  /** Files that have a blob, found or not, and an id after this one, ordered by id. */
  storedFiles: (db: Sql, after: string, limit: number) =>
    db.all<StoredFile>`
      SELECT f.uuid AS id, f.blob, f.status, m.uuid AS message_uuid
      FROM files f LEFT JOIN messages m ON m.id = f.message_id
      WHERE f.blob IS NOT NULL AND f.uuid > ${after} ORDER BY f.uuid LIMIT ${limit}`,
  /** The ids of blobs whose files are deleted, to delete them too. */
  abandonedBlobs: (db: Sql, limit: number) =>
    db.column<string>`SELECT blob FROM abandoned_blobs LIMIT ${limit}`,
  /** The announced sizes of all files, of those whose bytes have not arrived too. */
  announcedBytes: (db: Sql) =>
    db.firstNumber`SELECT CAST(coalesce(sum(size), 0) AS bigint) AS bytes FROM files`,
  /** The bytes that `insertFile` has counted for a person on a day. */
  uploadedBytes: (db: Sql, ownerId: number, day: string) =>
    db.firstNumber`SELECT bytes FROM upload_usage WHERE owner_id = ${ownerId} AND day = ${day}`,
};

export const fileWrites = {
  /**
   * Inserts an announced file and adds the usage to the count of the person. No other unit adds to that
   * count until this one ends: read after the call, `uploadedBytes` shows what all units have added.
   */
  async insertFile(db: Sql, { id, at, ...file }: NewFile, usage: UploadUsage): Promise<void> {
    await db.insert("files", { ...file, uuid: id, created_at: at });
    await db.change`
      INSERT INTO upload_usage (owner_id, day, bytes)
      VALUES (${usage.person_id}, ${usage.day}, ${usage.bytes})
      ON CONFLICT (owner_id, day) DO UPDATE SET bytes = upload_usage.bytes + excluded.bytes`;
  },
  /**
   * Makes a file ready. Returns false, and changes nothing, if the file is gone, in use, or its bytes
   * have arrived already.
   */
  finishFile: (db: Sql, id: string, content: FileContent) =>
    db.hasChanged`
      UPDATE files SET status = 'ready', blob = ${content.blob}, type = ${content.type},
        size = ${content.size}, width = ${content.width}, height = ${content.height},
        duration_ms = ${content.duration_ms}, placeholder = ${content.placeholder}
      WHERE uuid = ${id} AND status <> 'ready' AND used_at IS NULL`,
  /** Marks a file whose bytes were refused. Does nothing if it is gone or ready. */
  async failFile(db: Sql, id: string): Promise<void> {
    await db.change`UPDATE files SET status = 'failed' WHERE uuid = ${id} AND status <> 'ready'`;
  },
  /**
   * Gives files to a message, whose conversation the unit owns. Returns false if one of them is gone, not
   * ready, or used already; the unit must then fail.
   */
  async attachFiles(db: Sql, ids: readonly string[], messageUuid: string, at: number) {
    const attached = await db.changed<InConversation>`
      UPDATE files
      SET used_at = ${at}, message_id = (SELECT id FROM messages WHERE uuid = ${messageUuid})
      WHERE uuid = ANY(${ids}::uuid[]) AND used_at IS NULL AND status = 'ready'
      RETURNING conversation_id`;
    checkChanged(db, attached);
    return attached.length === ids.length;
  },
  /** Deletes the files among these that nothing uses, abandons their blobs, and returns how many they are. */
  deleteUnusedFiles: (db: Sql, ids: readonly string[]) =>
    deleteFiles(db, sql`uuid = ANY(${ids}::uuid[]) AND used_at IS NULL`),
  /**
   * Makes a file ready if its blob was found, and failed if it is missing. Returns false, and changes
   * nothing, if the file is gone, or has another blob or another message by now. The unit owns the
   * conversation of the message, and must change what the message shows of the file.
   */
  async setBlobFound(
    db: Sql,
    { id, blob, message_uuid }: Omit<StoredFile, "status">,
    isFound: boolean,
  ): Promise<boolean> {
    const changed = await db.changed<InConversation>`
      UPDATE files SET status = ${isFound ? "ready" : "failed"}
      WHERE uuid = ${id} AND blob = ${blob}
        AND message_id IS NOT DISTINCT FROM (SELECT id FROM messages WHERE uuid = ${message_uuid})
      RETURNING conversation_id`;
    if (message_uuid !== null) checkChanged(db, changed);
    return changed.length > 0;
  },
  /** Forgets abandoned blobs once they are deleted. */
  async forgetBlobs(db: Sql, ids: readonly string[]): Promise<void> {
    await db.change`DELETE FROM abandoned_blobs WHERE blob = ANY(${ids}::uuid[])`;
  },
};

type InConversation = { conversation_id: number | null };

/** Throws if the unit does not own the conversations of files that it has changed. */
function checkChanged(db: Sql, files: readonly InConversation[]): void {
  for (const { conversation_id } of files)
    if (conversation_id !== null) db.changes(conversation_id);
}

/**
 * Deletes the files for which a condition is true, and abandons their blobs. Returns how many files it
 * deleted.
 */
async function deleteFiles(db: Sql, where: Fragment): Promise<number> {
  const deleted = await db.changed<{ blob: string | null }>`
    DELETE FROM files WHERE ${where} RETURNING blob`;
  const blobs = deleted.map(({ blob }) => blob).filter((blob) => blob !== null);
  if (blobs.length > 0) {
    await db.change`
      INSERT INTO abandoned_blobs (blob) SELECT blob FROM unnest(${blobs}::uuid[]) AS b (blob)`;
  }
  return deleted.length;
}

export const deleteFile = (db: Sql, id: string) => deleteFiles(db, sql`uuid = ${id}`);

/** Deletes the files of a message. */
export const deleteFilesOf = (db: Sql, messageId: number) =>
  deleteFiles(db, sql`message_id = ${messageId}`);

/** Deletes the files of the members of a conversation in it that no message has. */
export const deleteUnsentFilesIn = (db: Sql, conversationId: number) =>
  deleteFiles(
    db,
    sql`owner_id IN (SELECT account_id FROM members WHERE conversation_id = ${conversationId})
      AND conversation_id = ${conversationId} AND message_id IS NULL`,
  );

/** Deletes the files of a person that no message has. */
export const deleteUnusedFilesOf = (db: Sql, ownerId: number) =>
  deleteFiles(db, sql`owner_id = ${ownerId} AND used_at IS NULL`);

/**
 * Makes a file the picture of an account, or of a conversation, whose file it becomes. Returns false for
 * a file that is gone, not ready, used already or of a conversation.
 */
export const usePicture = (db: Sql, id: string, at: number, conversationId: number | null) =>
  db.hasChanged`
    UPDATE files SET used_at = ${at}, conversation_id = ${conversationId}
    WHERE uuid = ${id} AND used_at IS NULL AND status = 'ready' AND conversation_id IS NULL`;

export interface FilesQuery {
  conversationId: number;
  viewerId: number;
  /** Exclusive. */
  after: number;
  /** Inclusive. */
  upTo: number;
  /** Number of messages. */
  limit: number;
}

/** The files of a message. */
interface MessageFiles {
  message_id: string;
  seq: number;
  sender: Account;
  sent_at: string;
  files: readonly File[];
}

type MessageFilesRow = Omit<MessageFiles, "sent_at" | "sender"> & {
  sender: AccountRow;
  created_at: number;
};

const readMessageFiles = reader<MessageFilesRow>({ json: ["files"] });

export interface NewFile {
  readonly id: string;
  readonly owner_id: number;
  /** Null for a picture. */
  readonly conversation_id: number | null;
  readonly name: string;
  /** In bytes, as announced. */
  readonly size: number;
  readonly at: number;
}

/** What a file adds to the bytes that are counted for its owner on a day (`YYYY-MM-DD`, in UTC). */
export interface UploadUsage {
  /** The person whose limit it counts against. */
  readonly person_id: number;
  readonly day: string;
  readonly bytes: number;
}

/** What is known of a file once its bytes have arrived. */
export interface FileContent {
  readonly blob: string;
  readonly type: string;
  readonly size: number;
  readonly width: number | null;
  readonly height: number | null;
  readonly duration_ms: number | null;
  readonly placeholder: string | null;
}

export interface StoredFile {
  readonly id: string;
  readonly blob: string;
  readonly status: File["status"];
  readonly message_uuid: string | null;
}

/** Before the ids of all files. */
export const FIRST_FILE = "00000000-0000-0000-0000-000000000000";

export interface FileRecord extends File {
  readonly owner_id: number;
  readonly owner_state: "active" | "suspended" | "erased";
  /** Null for a picture that is not a group's. */
  readonly conversation_uuid: string | null;
  readonly message_uuid: string | null;
  /** The id of its bytes; null until they have arrived. */
  readonly blob: string | null;
  /** Whether a message has it, or it is a picture of an account or a group. */
  readonly used: boolean;
  readonly created_at: number;
}

export const ANY_STORED_FILE = "SELECT 1 FROM files WHERE blob IS NOT NULL LIMIT 1";

const FILES = sql`SELECT f.uuid AS id, f.owner_id, c.uuid AS conversation_uuid, f.blob, f.name,
    f.type, f.size, f.width, f.height, f.duration_ms, f.status, f.placeholder, f.created_at,
    f.used_at IS NOT NULL AS used, m.uuid AS message_uuid, CASE WHEN o.erased_at IS NOT NULL
      THEN 'erased' WHEN o.suspended_at IS NOT NULL THEN 'suspended' ELSE 'active' END AS owner_state
  FROM files f LEFT JOIN messages m ON m.id = f.message_id
  LEFT JOIN conversations c ON c.id = f.conversation_id JOIN accounts o ON o.id = f.owner_id`;

const readFile = reader<FileRecord>({ flags: ["used"] });
