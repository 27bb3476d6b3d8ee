/** Builds blocks from paired tags and the text between them. */

import {
  type Block,
  type CardBlock,
  type FormBlock,
  isContainer,
  type Piece,
  type SelectField,
} from "./elements.ts";
import type { Scan, Tag } from "./scan.ts";

type Parent = { type: "root"; children: Block[] } | CardBlock | FormBlock | SelectField;

const mayHold: Record<Parent["type"], readonly Piece["type"][]> = {
  root: ["markdown", "card", "form", "button"],
  card: ["markdown", "form", "button"],
  form: ["markdown", "input", "select", "button"],
  select: ["option"],
};

export function buildTree({ content, tags, cut }: Scan): Block[] {
  const end = Math.min(cut, content.length);
  const root = { type: "root" as const, children: [] };
  const frames: { parent: Parent; closer: Tag | null }[] = [];
  let parent: Parent = root;
  let closer: Tag | null = null;
  let textStart = 0;
  for (const tag of tags) {
    if (tag.start >= end) break;
    if (tag !== closer && !fits(tag, parent)) continue;
    put(parent, textBlock(content, textStart, tag.start, parent));
    textStart = tag.end;
    if (tag === closer) {
      ({ parent, closer } = frames.pop() ?? { parent: root, closer: null });
    } else {
      put(parent, tag.piece);
      if (tag.closer === null) continue;
      frames.push({ parent, closer });
      parent = tag.piece as Parent;
      closer = tag.closer;
    }
  }
  put(parent, textBlock(content, textStart, end, parent));
  return root.children;
}

function fits({ piece, closer }: Tag, parent: Parent): boolean {
  if (piece === null || (isContainer(piece.type) && closer === null)) return false;
  return mayHold[parent.type].includes(piece.type);
}

function put(parent: Parent, piece: Piece | null) {
  if (piece === null) return;
  if (parent.type !== "select") (parent.children as Piece[]).push(piece);
  else if (piece.type === "option") parent.options.push(piece.label);
}

function textBlock(content: string, start: number, end: number, parent: Parent) {
  let last = end;
  while (last > start && " \t\n".includes(content.charAt(last - 1))) last--;
  if (last === start) return null;
  const source = content.slice(start, last);
  // White space next to a tag is layout, and so is indentation inside of an element.
  const besideTag = start === 0 ? source : source.replace(/^[ \t]+/, "");
  const laidOut = parent.type === "root" ? besideTag : dedent(besideTag);
  return { type: "markdown" as const, text: laidOut.replace(/^(?:[ \t]*\n)+/, "") };
}

/** Removes from all lines but the first the indentation that they share. */
function dedent(text: string): string {
  const [first = "", ...lines] = text.split("\n");
  let shared = Infinity;
  for (const line of lines) {
    const indentation = line.search(/[^ \t]/);
    if (indentation >= 0 && indentation < shared) shared = indentation;
  }
  return [first, ...lines.map((line) => line.slice(Math.min(shared, line.length)))].join("\n");
}

/** All blocks and fields, at any depth, in the order of the content. */
export function* everyBlock(blocks: Block[]): Generator<Block | FormBlock["children"][number]> {
  for (const block of blocks) {
    yield block;
    if (block.type === "card") yield* everyBlock(block.children);
    if (block.type === "form") yield* block.children;
  }
}
