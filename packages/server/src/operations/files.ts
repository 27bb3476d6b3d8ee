import { operations } from "@parley/protocol";
import { checkWritable, joinedConversation } from "../domain/access.ts";
import {
  checkDailyBytes,
  checkFileSize,
  loadableFiles,
  takesNoFiles,
  uploadUsage,
} from "../domain/files.ts";
import { lockActive } from "../domain/sessions.ts";
import { linksNow } from "../files/links.ts";
import { bind } from "../operation.ts";
import { conflict, forbidden, notFound } from "../rules/failure.ts";
import { publicFile } from "../rules/files.ts";
import { iso } from "../rules/time.ts";
import type { Participant } from "../security/caller.ts";
import type { ReadTx } from "../store/store.ts";

/** How long the address of an upload takes bytes. */
const UPLOAD_MS = 60 * 60 * 1000;

const createUpload = bind(operations.createUpload, async (context, input) => {
  const { chat_id, name, size } = input;
  const { store, caller, config, files, origin } = context;
  if (!files) throw takesNoFiles();
  const { file_bytes, upload_bytes_per_day: limit } = config.limits;
  if (chat_id === undefined && caller.kind === "agent") {
    throw forbidden("agents upload files to conversations only");
  }
  checkFileSize(size, file_bytes);
  await files.quota.check(size);
  const id = Bun.randomUUIDv7();
  const now = Date.now();
  const file = await store.write(async (tx) => {
    await lockActive(tx, caller.account);
    const conversation_id = chat_id === undefined ? null : await writable(tx, chat_id, caller);
    const owner_id = caller.account.id;
    const about = { id, owner_id, conversation_id, name, size, at: now };
    await tx.insertFile(about, uploadUsage(caller.account, size, now));
    await checkDailyBytes(tx, caller, { now, limit });
    const [inserted] = await tx.files([id]);
    if (!inserted) throw new Error(`the file ${id} was not inserted`);
    return publicFile(inserted);
  });
  files.quota.add(size);
  const expires = now + UPLOAD_MS;
  return {
    file,
    upload_url: `${origin.base ?? ""}${files.links.sign("upload", id, expires)}`,
    expires_at: iso(expires),
  };
});

const cancelUpload = bind(operations.cancelUpload, ({ store, caller }, { file_id }) =>
  store.write(async (tx) => {
    const [file] = await tx.files([file_id]);
    if (file?.owner_id !== caller.account.id) throw notFound(`file ${file_id}`);
    if (file.used) throw conflict("this file is used: delete its message, or remove the picture");
    await tx.deleteUnusedFiles([file_id]);
  }),
);

const getFileLinks = bind(operations.getFileLinks, async (context, { file_ids }) => {
  const { store, caller, files, origin } = context;
  if (!files) return { items: [] };
  const found = await store.read((tx) => loadableFiles(tx, file_ids, caller));
  const { link, end } = linksNow(files, origin);
  return {
    items: found.map(({ id, placeholder }) => ({
      file_id: id,
      url: link("content", id),
      preview_url: placeholder === null ? null : link("preview", id),
      expires_at: iso(end),
    })),
  };
});

/** The id of a conversation that the caller can write to. */
async function writable(tx: ReadTx, chatId: string, caller: Participant): Promise<number> {
  const conversation = await joinedConversation(tx, chatId, caller);
  checkWritable(conversation);
  return conversation.id;
}

export const files = [createUpload, cancelUpload, getFileLinks];
