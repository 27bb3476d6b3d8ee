import type { VirtualItem } from "@tanstack/react-virtual";

/** The scroll position of a conversation when it was left. */
export interface ScrollPosition {
  /** The row at the top. */
  key: string;
  /** How many pixels of the row were scrolled out of view. */
  hiddenPx: number;
  /** The measured heights of rows. */
  sizes: VirtualItem[];
}

const positions = new Map<string, ScrollPosition>();

export const savedPosition = (chatId: string): ScrollPosition | undefined => positions.get(chatId);

/** Null for a conversation that was left at its end: it opens at its end again. */
export function savePosition(chatId: string, position: ScrollPosition | null): void {
  if (position) positions.set(chatId, position);
  else positions.delete(chatId);
}
