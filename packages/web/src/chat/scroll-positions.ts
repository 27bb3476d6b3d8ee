import type { VirtualItem } from "@tanstack/react-virtual";

/** Where somebody was in a conversation when they left it. */
export interface Place {
  /** The row at the top, and how much of it was out of sight. */
  key: string;
  hidden: number;
  /** How high the rows were that had been shown. */
  sizes: VirtualItem[];
}

const places = new Map<string, Place>();

export const savedPosition = (chatId: string): Place | undefined => places.get(chatId);

/** Whoever was at the end has no place to come back to: they come back to the end. */
export function savePosition(chatId: string, place: Place | null): void {
  if (place) places.set(chatId, place);
  else places.delete(chatId);
}
