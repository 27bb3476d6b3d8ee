import type { LocalFile } from "../types.ts";
import { nameOf } from "./name.ts";

/** Where the bytes of an unsent message's file are stored. It is the file's id until it is uploaded. */
export const blobKey = (clientMsgId: string, index: number): string => `${clientMsgId}/${index}`;

/** A file of an unsent message that is not uploaded yet. */
export function createLocalFile(clientMsgId: string, blob: Blob, index: number): LocalFile {
  return {
    id: blobKey(clientMsgId, index),
    name: nameOf(blob),
    type: blob.type || "application/octet-stream",
    size: blob.size,
    width: null,
    height: null,
    duration_ms: null,
    status: "waiting",
    placeholder: null,
  };
}

/** The file without what belongs to this run of the client. */
export function withoutRuntimeFields(file: LocalFile): LocalFile {
  const { progress: _, url: __, error: ___, ...stored } = file;
  return stored;
}
