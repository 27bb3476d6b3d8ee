import type { LocalFile, LocalMessage } from "@parley/client";
import { useMemo } from "react";

/** A file of a message as it is shown. */
export interface ShownFile extends LocalFile {
  /** The server has it, so that links to it exist. */
  isSent: boolean;
}

export function useShownFiles(message: LocalMessage | undefined): readonly ShownFile[] {
  return useMemo(() => (message ? shownFiles(message) : []), [message]);
}

const shownFiles = ({ files, delivery }: LocalMessage): ShownFile[] =>
  files.map((file) => ({ ...file, isSent: delivery === "sent" }));
