import type { AccountRecord } from "../accounts.ts";
import type { AvatarRecord, PictureReads, PictureWrites } from "../pictures.ts";
import { ACCOUNT, COUNT_NAME } from "../shared/accounts.ts";
import { USE_PICTURE } from "../shared/files.ts";
import type { Connection } from "./connection.ts";
import { deleteFiles } from "./files.ts";

export function pictureReads(db: Connection): PictureReads {
  const avatars = db.query<AvatarRecord>(
    `SELECT a.id AS account_id, a.picture_id AS file_id
     FROM json_each(?) j JOIN accounts a ON a.id = j.value WHERE a.picture_id IS NOT NULL`,
  );
  return { avatars: (accountIds) => avatars.all(JSON.stringify(accountIds)) };
}

export function pictureWrites(db: Connection): PictureWrites {
  const use = db.change(USE_PICTURE);
  const remove = deleteFiles(db, "uuid = ?");
  const ofAccount = db.query<{ picture_id: string | null }>(
    "SELECT picture_id FROM accounts WHERE id = ?",
  );
  const ofConversation = db.query<{ picture_id: string | null }>(
    "SELECT picture_id FROM conversations WHERE id = ?",
  );
  const count = db.change<{ seq: number }>(COUNT_NAME);
  const setAvatar = db.change("UPDATE accounts SET picture_id = ?2, version = ?3 WHERE id = ?1");
  const setPicture = db.change("UPDATE conversations SET picture_id = ?2 WHERE id = ?1");
  const account = db.query<AccountRecord>(`SELECT ${ACCOUNT} FROM accounts a WHERE a.id = ?`);

  const replace = (former: string | null, next: string | null, at: number, chat: number | null) => {
    if (next !== null && use.run(next, at, chat).changes === 0) return false;
    if (former !== null) remove(former);
    return true;
  };

  return {
    setAvatar: (accountId, fileId, at) => {
      const former = ofAccount.get(accountId);
      if (!former) throw new Error(`account ${accountId} is missing`);
      if (!replace(former.picture_id, fileId, at, null)) return null;
      setAvatar.run(accountId, fileId, count.get()?.seq ?? 0);
      return account.get(accountId);
    },
    setChatPicture: (conversationId, fileId, at) => {
      const former = ofConversation.get(conversationId)?.picture_id ?? null;
      if (!replace(former, fileId, at, conversationId)) return false;
      setPicture.run(conversationId, fileId);
      return true;
    },
  };
}
