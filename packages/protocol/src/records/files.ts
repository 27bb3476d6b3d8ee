import { z } from "zod";
import { timestamp, uuid } from "../text/fields.ts";
import { record } from "./record.ts";

export const File = record("File", {
  id: uuid,
  name: z.string(),
  type: z.string().meta({
    description:
      "What the bytes are; until they have arrived, `application/octet-stream`. Never what the client claimed.",
  }),
  size: z.int().meta({ description: "In bytes. Pictures are stored again without metadata." }),
  width: z.int().nullable().meta({ description: "Of a picture, in pixels; otherwise null." }),
  height: z.int().nullable(),
  duration_ms: z.int().nullable().meta({
    description: "Of audio and video, where the file says it; otherwise null.",
  }),
  status: z.enum(["waiting", "ready", "failed"]).meta({
    description:
      "`waiting` until the bytes have arrived; `failed` if they were refused. Both can be sent again. `failed` in a message: the server has lost the bytes.",
  }),
  placeholder: z.string().nullable().meta({
    description: "A tiny blurred picture as a data URL, to show until the picture has loaded.",
  }),
});
export type File = z.infer<typeof File>;

export const FileLinks = record("FileLinks", {
  file_id: uuid,
  url: z.string().meta({
    description: "Absolute where the server knows its address, otherwise relative to it.",
  }),
  preview_url: z
    .string()
    .nullable()
    .meta({ description: "A small version of a picture, as WebP; null for other files." }),
  expires_at: timestamp.meta({ description: "When the links expire." }),
});
export type FileLinks = z.infer<typeof FileLinks>;
