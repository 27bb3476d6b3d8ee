import { operations } from "@parley/protocol";
import { checkWritable, joinedConversation } from "../domain/access.ts";
import { checkDailyBytes, checkSize, dayOf, loadableFiles, takesNoFiles } from "../domain/files.ts";
import { linkEnd } from "../files/links.ts";
import { bind } from "../operation.ts";
import { conflict } from "../rules/failure.ts";
import { iso } from "../rules/time.ts";
import { publicFile } from "../store/shared/files.ts";

/** How long the address of an upload takes bytes. */
const UPLOAD_MS = 60 * 60 * 1000;

const createUpload = bind(operations.createUpload, async (context, { chat_id, name, size }) => {
  const { store, caller, config, files, origin } = context;
  if (!files) throw takesNoFiles();
  const { file_bytes, upload_bytes_per_day: limit } = config.limits;
  checkSize(size, file_bytes);
  const id = Bun.randomUUIDv7();
  const now = Date.now();
  const file = await store.write(async (tx) => {
    const conversation = await joinedConversation(tx, chat_id, caller);
    checkWritable(conversation);
    await checkDailyBytes(tx, caller, { size, now, limit });
    const owner_id = caller.account.id;
    await tx.insertFile(
      { id, owner_id, conversation_id: conversation.id, name, size, at: now },
      dayOf(now),
    );
    const [inserted] = await tx.files([id]);
    if (!inserted) throw new Error(`the file ${id} was not inserted`);
    return publicFile(inserted);
  });
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
    if (file?.owner_id !== caller.account.id) return;
    if (file.used) throw conflict("a message has this file: delete the message");
    await tx.deleteUnusedFiles([file_id]);
  }),
);

const getFileLinks = bind(operations.getFileLinks, async (context, { file_ids }) => {
  const { store, caller, files, origin } = context;
  if (!files) return { items: [] };
  const found = await store.read((tx) => loadableFiles(tx, file_ids, caller));
  const end = linkEnd(Date.now());
  const link = (purpose: "content" | "preview", id: string) =>
    `${origin.base ?? ""}${files.links.sign(purpose, id, end)}`;
  return {
    items: found.map(({ id, placeholder }) => ({
      file_id: id,
      url: link("content", id),
      preview_url: placeholder === null ? null : link("preview", id),
      expires_at: iso(end),
    })),
  };
});

export const files = [createUpload, cancelUpload, getFileLinks];
