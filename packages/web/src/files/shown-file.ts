import type { LocalFile, LocalMessage } from "@parley/client";
import { useMemo } from "react";
import { copiesOf } from "./local-copies.ts";

/** A file of a message as it is shown. */
export interface ShownFile extends LocalFile {
  /** The server has it, so that links to it exist. */
  isSent: boolean;
  /** How much of it is uploaded, from 0 to 1; null if it is not being uploaded. */
  uploaded: number | null;
}

/** The files of a message. The sizes of pictures are known before the server has found them out. */
export function useShownFiles(message: LocalMessage | undefined): readonly ShownFile[] {
  return useMemo(() => (message ? shownFiles(message) : []), [message]);
}

export function shownFiles({ files, delivery, client_msg_id }: LocalMessage): ShownFile[] {
  const copies = copiesOf(client_msg_id);
  return files.map((file, index) => ({
    ...file,
    width: file.width ?? copies[index]?.size?.width ?? null,
    height: file.height ?? copies[index]?.size?.height ?? null,
    isSent: delivery === "sent",
    uploaded: delivery === "sending" ? (file.progress ?? 0) : null,
  }));
}
