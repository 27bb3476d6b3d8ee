import { z } from "zod";
import { cursor, exclusive, limit, operation, page } from "../operation.ts";
import { Account, File, FileLinks } from "../records.ts";
import { fileName, text, timestamp, uuid } from "../text/fields.ts";

export const createUpload = operation({
  name: "createUpload",
  socket: "files.create",
  policy: "files",
  agents: true,
  summary: "Announces a file, and returns the address that takes its bytes.",
  input: exclusive(
    z.object({
      chat_id: uuid.optional().meta({ description: "The conversation that the file is for." }),
      purpose: z.literal("picture").optional().meta({
        description:
          "In place of `chat_id`: the file is for `setAvatar` or `setChatPicture`. It must be a JPEG, PNG, WebP, GIF or BMP picture, and is stored at most 512 pixels wide and high, as a still.",
      }),
      name: fileName,
      size: z.int().min(0).meta({ description: "In bytes; at most the server's `file_bytes`." }),
      type: text(0, 255).optional().meta({
        description: "Ignored: the server detects the type by the bytes.",
      }),
    }),
    "chat_id",
    "purpose",
  )
    .refine(({ chat_id, purpose }) => chat_id !== undefined || purpose !== undefined, {
      message: "is required, or purpose",
      path: ["chat_id"],
    })
    .meta({ anyOf: [{ required: ["chat_id"] }, { required: ["purpose"] }] }),
  output: z.object({
    file: File,
    upload_url: z.string().meta({
      description:
        "Takes the raw bytes by `PUT`, without a token. Absolute where the server knows its address, otherwise relative to it.",
    }),
    expires_at: timestamp.meta({ description: "Until when `upload_url` takes bytes." }),
  }),
  errors: ["forbidden", "not_found"],
});

export const cancelUpload = operation({
  name: "cancelUpload",
  socket: "files.cancel",
  agents: true,
  summary: "Deletes an upload of the caller that is not used.",
  input: z.object({ file_id: uuid }),
  errors: ["not_found", "conflict"],
});

export const getFileLinks = operation({
  name: "getFileLinks",
  socket: "files.links",
  agents: true,
  summary:
    "Returns addresses from which files can be loaded without a token, for at least ten minutes.",
  cost: { call: 1, each: { file_ids: 0.2 } },
  input: z.object({
    file_ids: z.array(uuid).min(1).max(100).meta({
      description:
        "Files of the caller's conversations, or uploads of the caller. Those that are gone or not ready are left out of the result.",
    }),
  }),
  output: z.object({ items: z.array(FileLinks) }),
  errors: ["forbidden"],
});

export const getChatFiles = operation({
  name: "getChatFiles",
  socket: "files.list",
  agents: true,
  summary: "Returns a page of the files that were sent to a conversation, newest first.",
  cost: { call: 5 },
  input: z.object({ chat_id: uuid, cursor, limit }),
  output: page(
    z.object({
      message_id: uuid,
      seq: z.int().meta({ description: "The place of the message in the conversation." }),
      sender: Account,
      sent_at: timestamp,
      file: File,
    }),
  ).meta({
    description:
      "The files of messages that the caller can see; those of one message in its order. A page covers a part of the history: it may have few items, or none, and still lead on.",
  }),
  errors: ["forbidden", "not_found"],
});
