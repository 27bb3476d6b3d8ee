import type { KeyValueStorage } from "../types.ts";

/** How far the messages of a conversation were delivered. */
export interface Position {
  /** The conversation's counter up to which every message was delivered. */
  readonly seq: number;
  /** The last message delivered; null if there is none. */
  readonly id: string | null;
  /** When that message was created; if there is none, the time from which messages are delivered. */
  readonly at: string;
}

/** All positions of one reader. The property names are the stored format. */
export interface Positions {
  historyId: string | null;
  /** When nothing was missing the last time; null before the first start. */
  completeAt: string | null;
  chats: Record<string, Position>;
}

export const noPositions = (): Positions => ({ historyId: null, completeAt: null, chats: {} });

export function readPositions(storage: KeyValueStorage | undefined, key: string): Positions {
  const stored = storage?.getItem(key);
  return stored ? (JSON.parse(stored) as Positions) : noPositions();
}
