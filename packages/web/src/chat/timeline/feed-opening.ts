import type { LocalMessage } from "@parley/client";
import { filesHeight } from "../../files/layout.ts";
import type { Row } from "./rows.ts";
import type { ScrollPosition } from "./scroll-positions.ts";

/** Where the list opens: at the saved scroll position, at the latest message, or at a given message. */
export type Start = "saved" | "latest" | { message: string };

/** Space above the first message. */
export const PADDING_START_PX = 24;

interface Opening {
  /** An estimate that is close enough to render the right rows first. */
  offset: number;
  isEnd: boolean;
  /** The message to bring into view. */
  message: { id: string } | null;
}

/** Opens at a given message, the saved position, the first unread message, or the end. */
export function openingOf(
  rows: readonly Row[],
  start: Start,
  saved: ScrollPosition | undefined,
): Opening {
  const sizes = new Map(saved?.sizes.map(({ key, size }) => [key, size]));
  const sizeOf = ({ key, message }: Row) => sizes.get(key) ?? estimateHeight(message);
  const at = (index: number, hiddenPx = 0): Opening => ({
    offset:
      rows.slice(0, index).reduce((sum, row) => sum + sizeOf(row), PADDING_START_PX) + hiddenPx,
    isEnd: false,
    message: null,
  });
  if (typeof start === "object") {
    const index = rows.findIndex(({ message }) => message.id === start.message);
    if (index >= 0) return { ...at(index), message: { id: start.message } };
  }
  const savedIndex = rows.findIndex(({ key }) => key === saved?.key);
  if (start === "saved" && savedIndex >= 0) return at(savedIndex, saved?.hiddenPx);
  const unreadIndex = rows.findIndex(({ isFirstUnread }) => isFirstUnread);
  if (start === "saved" && unreadIndex >= 0) return at(unreadIndex);
  return { ...at(rows.length), isEnd: true };
}

/** The height of a row before it is measured, from its lines of text and from its files. */
export const estimateHeight = (message: LocalMessage | undefined) =>
  48 +
  (message?.content.split("\n") ?? []).reduce((sum, line) => sum + Math.ceil(line.length / 75), 0) *
    23 +
  (message ? filesHeight(message.files) : 0);
