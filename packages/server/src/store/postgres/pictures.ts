import type { AccountRecord } from "../accounts.ts";
import type { AvatarRecord, PictureReads, PictureWrites } from "../pictures.ts";
import { ACCOUNT, COUNT_NAME } from "../shared/accounts.ts";
import { USE_PICTURE } from "../shared/files.ts";
import { deleteFile } from "./files.ts";
import { list, type Methods, type Unit } from "./unit.ts";

export const pictureReads: Methods<keyof PictureReads> = {
  avatars: (unit, accountIds) =>
    unit.all<AvatarRecord>(
      `SELECT a.id AS account_id, a.picture_id AS file_id FROM accounts a
       WHERE a.id = ANY($1::bigint[]) AND a.picture_id IS NOT NULL`,
      list(accountIds),
    ),
};

export const pictureWrites: Methods<keyof PictureWrites> = {
  setAvatar: async (unit, accountId, fileId, at) => {
    const former = await unit.get("SELECT 1 FROM accounts WHERE id = $1", accountId);
    if (!former) throw new Error(`account ${accountId} is missing`);
    await unit.ownRow("accounts", accountId);
    const { picture_id } = await pictureOf(unit, "accounts", accountId);
    if (fileId !== null && !(await useFile(unit, fileId, at, null))) return null;
    if (picture_id !== null) await deleteFile(unit, picture_id);
    // A unit that owns the counter commits before the next one increments it: versions become visible
    // in their order.
    await unit.ownRow("name_counter", 1);
    const [changed] = await unit.write<AccountRecord>(
      `WITH counted AS (${COUNT_NAME})
       UPDATE accounts a SET picture_id = $2, version = counted.seq FROM counted WHERE a.id = $1
       RETURNING ${ACCOUNT}`,
      accountId,
      fileId,
    );
    return changed ?? null;
  },
  setChatPicture: async (unit, conversationId, fileId, at) => {
    await unit.own(conversationId);
    const { picture_id } = await pictureOf(unit, "conversations", conversationId);
    if (fileId !== null && !(await useFile(unit, fileId, at, conversationId))) return false;
    if (picture_id !== null) await deleteFile(unit, picture_id);
    await unit.write(
      "UPDATE conversations SET picture_id = $2 WHERE id = $1",
      conversationId,
      fileId,
    );
    return true;
  },
};

async function pictureOf(
  unit: Unit,
  table: "accounts" | "conversations",
  id: number,
): Promise<{ picture_id: string | null }> {
  const sql = `SELECT picture_id FROM ${table} WHERE id = $1`;
  return (await unit.get<{ picture_id: string | null }>(sql, id)) ?? { picture_id: null };
}

async function useFile(
  unit: Unit,
  fileId: string,
  at: number,
  conversationId: number | null,
): Promise<boolean> {
  return (await unit.write(USE_PICTURE, fileId, at, conversationId)).count > 0;
}
