/** What the steps of parsing share. */

import type { ContainerName, Piece } from "./elements.ts";

/** A tag of ours outside of code. With a piece it is or begins an element, without it ends one. */
export interface Tag {
  start: number;
  end: number;
  piece: Piece | null;
  /** Of a card, form or select that is closed. */
  closer: Tag | null;
}

/** What is known of the content so far. */
export interface Scan {
  content: string;
  /** In the order of the content. */
  tags: Tag[];
  /** The text outside of code, in pieces. */
  prose: string[];
  /** Elements not closed yet, outermost first. */
  open: Tag[];
  openCount: Record<ContainerName, number>;
  /** From here on nothing can be told before more content comes. */
  cut: number;
  /** Block quotes and list items around the line, outermost first: a quote, or an item's width. */
  containers: number[];
  /** The innermost list item has nothing in it yet. */
  emptyItem: boolean;
  fence: { mark: string; size: number; depth: number } | null;
  paragraph: { start: number; end: number } | null;
}

export function matchAt(sticky: RegExp, text: string, position: number) {
  sticky.lastIndex = position;
  return sticky.exec(text);
}
