import type { File } from "@parley/protocol";
import type { Awaitable } from "./awaitable.ts";

/** Files that people have announced or uploaded. Their bytes are kept elsewhere, by the id of the blob. */
export interface FileReads {
  /** The files with one of these ids, in no particular order. */
  files(ids: readonly string[]): Awaitable<FileRecord[]>;
  /** The ids of files that nothing uses and that were announced before a time, oldest first. */
  unusedFiles(before: number, limit: number): Awaitable<string[]>;
  /** The subset of these blobs that belong to a file. */
  usedBlobs(ids: readonly string[]): Awaitable<string[]>;
  /** Files of a person that are ready and have an id after this one, ordered by id. */
  filesOf(ownerId: number, after: string, limit: number): Awaitable<FileRecord[]>;
  /** Files that have a blob, found or not, and an id after this one, ordered by id. */
  storedFiles(after: string, limit: number): Awaitable<StoredFile[]>;
  /** The ids of blobs whose files are deleted, to delete them too. */
  abandonedBlobs(limit: number): Awaitable<string[]>;
  /** The announced sizes of all files, of those whose bytes have not arrived too. */
  announcedBytes(): Awaitable<number>;
  /** The bytes that `insertFile` has counted for a person on a day. */
  uploadedBytes(ownerId: number, day: string): Awaitable<number>;
}

export interface FileWrites {
  /**
   * Inserts an announced file and adds the usage to the count of the person. No other unit adds to that
   * count until this one ends: read after the call, `uploadedBytes` shows what all units have added.
   */
  insertFile(file: NewFile, usage: UploadUsage): Awaitable<void>;
  /**
   * Makes a file ready. Returns false, and changes nothing, if the file is gone, in use, or its bytes
   * have arrived already.
   */
  finishFile(id: string, content: FileContent): Awaitable<boolean>;
  /** Marks a file whose bytes were refused. Does nothing if it is gone or ready. */
  failFile(id: string): Awaitable<void>;
  /**
   * Gives files to a message. Returns false if one of them is gone, not ready, or used already; the
   * unit must then fail.
   */
  attachFiles(ids: readonly string[], messageUuid: string, at: number): Awaitable<boolean>;
  /** Deletes the files among these that nothing uses, abandons their blobs, and returns how many they are. */
  deleteUnusedFiles(ids: readonly string[]): Awaitable<number>;
  /**
   * Makes a file ready if its blob was found, and failed if it is missing. Returns false, and changes
   * nothing, if the file is gone, or has another blob or another message by now. The unit owns the
   * conversation of the message, and must change what the message shows of the file.
   */
  setBlobFound(file: Omit<StoredFile, "status">, isFound: boolean): Awaitable<boolean>;
  /** Forgets abandoned blobs once they are deleted. */
  forgetBlobs(ids: readonly string[]): Awaitable<void>;
}

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
