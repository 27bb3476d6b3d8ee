import { operations } from "@parley/protocol";
import { z } from "zod";
import { createResource } from "../calls/bind.ts";
import { checkWritable, joinedConversation } from "../domain/access.ts";
import {
  checkDailyBytes,
  checkFileSize,
  loadableFiles,
  takesNoFiles,
  uploadUsage,
} from "../domain/files.ts";
import { createCursor, pageBounds, pageOf } from "../domain/pagination.ts";
import { lockActive } from "../domain/sessions.ts";
import { linksNow } from "../files/links.ts";
import { conflict, forbidden, notFound } from "../rules/failure.ts";
import { publicFile } from "../rules/files.ts";
import { iso } from "../rules/time.ts";

export const files = createResource<"config" | "store" | "files">();

/** How long the address of an upload takes bytes. */
const UPLOAD_MS = 60 * 60 * 1000;

/**
 * The part of a conversation's counter that a page of its files covers. It bounds what a page costs in
 * a conversation with few files: no index has only the messages with files.
 */
const WALKED_SEQS = 2000;

/** The place of the first message of a page of files, and the number of its files to skip. */
const placeOfFile = createCursor(z.tuple([z.int(), z.int().min(0)]));

files.handle(operations.createUpload, async (context, input) => {
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
    const chat = chat_id === undefined ? null : await joinedConversation(tx, chat_id, caller);
    if (chat) checkWritable(chat);
    const conversation_id = chat?.id ?? null;
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

files.write(operations.cancelUpload, async (tx, { caller }, { file_id }) => {
  const [file] = await tx.files([file_id]);
  if (file?.owner_id !== caller.account.id) throw notFound(`file ${file_id}`);
  if (file.used) throw conflict("this file is used: delete its message, or remove the picture");
  await tx.deleteUnusedFiles([file_id]);
});

files.read(operations.getFileLinks, async (tx, { caller, files, origin }, { file_ids }) => {
  if (!files) return { items: [] };
  const found = await loadableFiles(tx, file_ids, caller);
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

files.read(operations.getChatFiles, async (tx, { caller, config }, input) => {
  const { id: conversationId, seq } = await joinedConversation(tx, input.chat_id, caller);
  const bounds = pageBounds(input.limit, config.limits);
  const [upTo, skipped] = placeOfFile.decode(input.cursor) ?? [seq, 0];
  const after = upTo - WALKED_SEQS;
  const viewerId = caller.account.id;
  const query = { conversationId, viewerId, after, upTo, limit: bounds.limit + 1 };
  const messages = await tx.messagesWithFiles(query);
  const found = messages.flatMap(({ files, ...message }) =>
    files.map((file, index) => ({ ...message, file, isLast: index + 1 === files.length, index })),
  );
  const { items, next_cursor } = pageOf(found.slice(skipped), bounds, (last) =>
    placeOfFile.encode(last.isLast ? [last.seq - 1, 0] : [last.seq, last.index + 1]),
  );
  return {
    items: items.map(({ index, isLast, ...item }) => item),
    next_cursor: next_cursor ?? (after > 0 ? placeOfFile.encode([after, 0]) : null),
  };
});
