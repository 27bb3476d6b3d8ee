import { ACCOUNTS } from "./account-records.ts";
import { type AccountRecord, countName } from "./accounts.ts";
import { deleteFile, usePicture } from "./files.ts";
import type { Sql } from "./sql.ts";

/** Pictures of accounts and groups: files that were uploaded for no conversation. */
export const pictureReads = {
  /** The pictures of those among these accounts that have one, in no particular order. */
  avatars: (db: Sql, accountIds: readonly number[]) =>
    db.all<AvatarRecord>`
      SELECT id AS account_id, picture_id AS file_id FROM accounts
      WHERE id = ANY(${accountIds}::bigint[]) AND picture_id IS NOT NULL`,
};

/**
 * A new picture takes the place of the former one, whose file is deleted and whose blob is abandoned.
 * Null removes the picture. A file that is gone, not ready, used already or of a conversation changes
 * nothing; the unit must then fail.
 */
export const pictureWrites = {
  /**
   * Increments the counter that all names and pictures share: its new value is the account's new
   * version. Returns the account as it is then, and null for a file that cannot be used.
   */
  async setAvatar(db: Sql, accountId: number, fileId: string | null, at: number) {
    if (!(await db.exists`SELECT 1 FROM accounts WHERE id = ${accountId}`))
      throw new Error(`account ${accountId} is missing`);
    await db.ownRow("accounts", accountId);
    const former = await db.firstValue<string>`
      SELECT picture_id FROM accounts WHERE id = ${accountId}`;
    if (!(await replace(db, former, fileId, at, null))) return null;
    const version = await countName(db);
    await db.update("accounts", { id: accountId }, { picture_id: fileId, version });
    return db.get<AccountRecord>`${ACCOUNTS} WHERE a.id = ${accountId}`;
  },
  /** The file becomes one of the conversation. Returns false for a file that cannot be used. */
  async setChatPicture(db: Sql, conversationId: number, fileId: string | null, at: number) {
    db.changes(conversationId);
    const former = await db.firstValue<string>`
      SELECT picture_id FROM conversations WHERE id = ${conversationId}`;
    if (!(await replace(db, former, fileId, at, conversationId))) return false;
    await db.update("conversations", { id: conversationId }, { picture_id: fileId });
    return true;
  },
};

export interface AvatarRecord {
  readonly account_id: number;
  readonly file_id: string;
}

/** Returns false, and changes nothing, if the new file cannot be used. */
async function replace(
  db: Sql,
  former: string | null,
  fileId: string | null,
  at: number,
  conversationId: number | null,
): Promise<boolean> {
  if (fileId !== null && !(await usePicture(db, fileId, at, conversationId))) return false;
  if (former !== null) await deleteFile(db, former);
  return true;
}
