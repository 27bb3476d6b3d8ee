import type { File } from "@parley/protocol";
import { type AccountRecord, personOf } from "../rules/accounts.ts";
import { badField, conflict, failure, forbidden, notFound, rateLimited } from "../rules/failure.ts";
import { dayOf } from "../rules/time.ts";
import type { Participant } from "../security/caller.ts";
import type { FileRecord, StoredFile, UploadUsage } from "../store/files.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";
import { joinedConversation } from "./access.ts";
import { announceEdit } from "./messages.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * The least that a file counts toward the daily bytes: its row and its objects take space too, and the
 * daily limit should also bound the number of empty files.
 */
const MIN_COUNTED_BYTES = 64 * 1024;

/** What the announcement of a file adds to the daily bytes of the person, or of the agent's owner. */
export const uploadUsage = (owner: AccountRecord, size: number, now: number): UploadUsage => ({
  person_id: personOf(owner),
  day: dayOf(now),
  bytes: Math.max(size, MIN_COUNTED_BYTES),
});

/** Throws (413) for a file that is larger than the server takes. */
export function checkFileSize(size: number, file_bytes: number): void {
  if (size <= file_bytes) return;
  const why = `a file has at most ${file_bytes} bytes`;
  throw failure("payload_too_large", why, { max_bytes: file_bytes });
}

/** Throws (400) for more files than a message may have. */
export function checkFileCount(count: number, most: number): void {
  if (count > most) throw badField("file_ids", `must have at most ${most} items`);
}

/**
 * Throws (429) when the person and their agents have announced too many bytes on the day, this file
 * included: the row that counts them is locked by then, so that two at once cannot both fit. Zero: no limit.
 */
export async function checkDailyBytes(
  tx: ReadTx,
  { account }: Participant,
  { now, limit }: { now: number; limit: number },
): Promise<void> {
  if (limit === 0 || (await tx.uploadedBytes(personOf(account), dayOf(now))) <= limit) return;
  const seconds = Math.ceil((DAY_MS - (now % DAY_MS)) / 1000);
  throw rateLimited(seconds, `more than ${limit} bytes of uploads a day`, { max_bytes: limit });
}

/**
 * The files of a message to be sent, in the given order. Throws if one does not exist or is not an
 * upload of the caller to this conversation (404), or is not ready or used already (409).
 */
export async function filesToSend(
  tx: ReadTx,
  ids: readonly string[],
  conversationUuid: string,
  { account }: Participant,
): Promise<FileRecord[]> {
  const found = new Map((await tx.files(ids)).map((file) => [file.id, file]));
  return ids.map((id, index) => {
    const file = found.get(id);
    const field = `file_ids.${index}`;
    const isOwn = file?.owner_id === account.id && file.conversation_uuid === conversationUuid;
    if (!file || !isOwn) throw notFound(`file ${id}`, { [field]: "is no upload of yours" });
    if (file.used) {
      throw conflict(`the file ${id} is part of another message`, { [field]: "is used already" });
    }
    if (file.status !== "ready") {
      throw conflict(`the bytes of the file ${id} have not arrived`, { [field]: "has no bytes" });
    }
    return file;
  });
}

/**
 * The files among these that the caller may load, in the given order: those of messages that the
 * caller can see, pictures of the caller's groups, and the caller's own uploads. Throws (403) if one
 * is of a conversation that the caller takes no part in.
 */
export async function loadableFiles(tx: ReadTx, ids: readonly string[], caller: Participant) {
  const files = await tx.files(ids);
  for (const uuid of new Set(files.map(({ conversation_uuid }) => conversation_uuid))) {
    if (uuid !== null) await joinedConversation(tx, uuid, caller);
  }
  const isOwn = ({ owner_id }: FileRecord) => owner_id === caller.account.id;
  if (files.some((file) => file.conversation_uuid === null && !isOwn(file))) {
    throw forbidden("this is a picture of somebody else: ask for their profile");
  }
  const messages = files.flatMap(({ message_uuid }) => message_uuid ?? []);
  const views = await tx.messageViews([...new Set(messages)], caller.account.id);
  const visible = new Set<string | null>([null, ...views.map(({ id }) => id)]);
  const isLoadable = (file: FileRecord) =>
    file.status === "ready" && (file.used || isOwn(file)) && visible.has(file.message_uuid);
  const found = new Map(files.filter(isLoadable).map((file) => [file.id, file]));
  return [...new Set(ids)].flatMap((id) => found.get(id) ?? []);
}

/**
 * Sets the status of a file to ready if its bytes were found, and to failed if they are missing, also in
 * its message, and announces that as an edit. Returns false, and changes nothing, if the file was deleted
 * or sent meanwhile.
 */
export async function markBytesFound(tx: WriteTx, file: StoredFile, isFound: boolean) {
  // Owns the conversation before the file is locked, in the order in which messages are sent.
  const message = file.message_uuid === null ? null : await tx.message(file.message_uuid);
  if (!(await tx.setBlobFound(file, isFound))) return false;
  if (!message) return true;
  const status: File["status"] = isFound ? "ready" : "failed";
  const files = message.files.map((each) => (each.id === file.id ? { ...each, status } : each));
  await announceEdit(tx, message.uuid, await tx.setMessageFiles(message, files));
  return true;
}

export const takesNoFiles = () => forbidden("this server takes no files");
