import { conflict, notFound } from "../rules/failure.ts";
import type { Caller } from "../security/caller.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";
import { announceAccount } from "./accounts.ts";
import { announceChanges } from "./groups.ts";

/**
 * Changes the picture of a person and announces it. Null removes it. Does nothing if it is the picture
 * already. Returns the account as it is then.
 */
export async function changeAvatar(tx: WriteTx, caller: Caller, fileId: string | null) {
  const { account } = caller;
  const [current] = await tx.avatars([account.id]);
  if ((current?.file_id ?? null) === fileId) return account;
  await checkPicture(tx, fileId, caller);
  const changed = await tx.setAvatar(account.id, fileId, Date.now());
  if (!changed) throw used();
  if (changed.erased_at !== null) throw notFound("account");
  await announceAccount(tx, changed);
  return changed;
}

/** Changes the picture of a group in the same way. */
export async function changeChatPicture(
  tx: WriteTx,
  group: ConversationRecord,
  caller: Caller,
  fileId: string | null,
): Promise<void> {
  if (group.picture_id === fileId) return;
  await checkPicture(tx, fileId, caller);
  if (!(await tx.setChatPicture(group.id, fileId, Date.now()))) throw used();
  await announceChanges(tx, group, caller.account, [{ kind: "picture_changed" }]);
}

/**
 * Throws if there is no such upload of the caller (404), or it is used already, not ready, or meant
 * for messages (409).
 */
async function checkPicture(tx: ReadTx, fileId: string | null, { account }: Caller): Promise<void> {
  if (fileId === null) return;
  const [file] = await tx.files([fileId]);
  if (file?.owner_id !== account.id)
    throw notFound(`file ${fileId}`, { file_id: "is no upload of yours" });
  if (file.used) throw used();
  if (file.conversation_uuid !== null) throw conflict("the file was not uploaded as a picture");
  if (file.status !== "ready") throw conflict("the bytes of the picture have not arrived");
}

const used = () => conflict("the picture is used already");
