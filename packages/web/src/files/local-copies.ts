import type { LocalMessage } from "@parley/client";
import type { Size } from "./layout.ts";

/** A file that was sent from this page. */
export interface LocalCopy {
  file: globalThis.File;
  /** The size of a picture, if it is known. */
  size: Size | null;
}

/** Messages whose files are remembered. */
const MAX_MESSAGES = 20;

const copies = new Map<string, readonly LocalCopy[]>();

/**
 * Remembers the files of a message by its `client_msg_id`: the sizes of its pictures, which the server
 * finds out later, and the files themselves, in case that the message returns to the composer.
 */
export function rememberCopies(clientMsgId: string, files: readonly LocalCopy[]): void {
  copies.set(clientMsgId, files);
  for (const [id] of [...copies].slice(0, -MAX_MESSAGES)) copies.delete(id);
}

/** The files of a message that was not sent, without those that are refused for good. */
export const acceptableCopies = ({ client_msg_id, files, isRejected }: LocalMessage) =>
  copiesOf(client_msg_id)
    .filter((_, index) => !isRejected || files[index]?.error === undefined)
    .map(({ file }) => file);

export const copiesOf = (clientMsgId: string | null): readonly LocalCopy[] =>
  (clientMsgId === null ? undefined : copies.get(clientMsgId)) ?? [];
