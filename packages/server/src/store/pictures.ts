import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

/** Pictures of accounts and groups: files that were uploaded for no conversation. */
export interface PictureReads {
  /** The pictures of those among these accounts that have one, in no particular order. */
  avatars(accountIds: readonly number[]): Awaitable<AvatarRecord[]>;
}

/**
 * A new picture takes the place of the former one, whose file is deleted and whose blob is abandoned.
 * Null removes the picture. A file that is gone, not ready, used already or of a conversation changes
 * nothing; the unit must then fail.
 */
export interface PictureWrites {
  /**
   * Increments the counter that all names and pictures share: its new value is the account's new
   * version. Returns the account as it is then, and null for a file that cannot be used.
   */
  setAvatar(accountId: number, fileId: string | null, at: number): Awaitable<AccountRecord | null>;
  /** The file becomes one of the conversation. Returns false for a file that cannot be used. */
  setChatPicture(conversationId: number, fileId: string | null, at: number): Awaitable<boolean>;
}

export interface AvatarRecord {
  readonly account_id: number;
  readonly file_id: string;
}
