/** The state that the steps of parsing share. */

import type { ContainerName, Piece } from "./elements.ts";

/** A tag of the markup outside of code. With a piece it is or begins an element; without, it ends one. */
export interface Tag {
  start: number;
  end: number;
  piece: Piece | null;
  /** The closing tag of a card, form or select; null if there is none. */
  closer: Tag | null;
}

/** The result of scanning the content so far. */
export interface Scan {
  content: string;
  /** In the order of the content. */
  tags: Tag[];
  /** The pieces of text outside of code. */
  prose: string[];
  /** Elements not closed yet, outermost first. */
  open: Tag[];
  openCount: Record<ContainerName, number>;
  /** The position from which on the result depends on content that has not come yet. */
  cut: number;
  /** The containers of the current line, outermost first: 0 for a block quote, a list item's width. */
  containers: number[];
  /** Whether the innermost list item is still empty. */
  emptyItem: boolean;
  fence: { mark: string; size: number; depth: number } | null;
  paragraph: { start: number; end: number } | null;
}

/** Matches a sticky regular expression at a position. */
export function matchAt(sticky: RegExp, text: string, position: number) {
  sticky.lastIndex = position;
  return sticky.exec(text);
}
