/**
 * The component markup: CommonMark with a few elements and no other HTML.
 *
 * Parsing takes three steps, each linear in the length of the content: `blocks.ts` separates code
 * blocks from paragraphs line by line, `inline.ts` finds the tags in paragraphs outside of code spans,
 * and `tree.ts` pairs the tags into a tree. Everything that is not an element stays text.
 */

import { handlesIn } from "../text/handles.ts";
import { scanBlocks } from "./blocks.ts";
import type { Block, FormBlock } from "./elements.ts";
import { describe, shorten } from "./text.ts";
import { buildTree, everyBlock } from "./tree.ts";

export type {
  Block,
  ButtonBlock,
  CardBlock,
  FormBlock,
  InputField,
  InputType,
  MarkdownBlock,
  SelectField,
} from "./elements.ts";
export { inertName, inertText, quotedText } from "./text.ts";

export interface MarkupOptions {
  /** The content is incomplete: unfinished elements are left out instead of shown as text. */
  streaming?: boolean;
}

/**
 * Never throws. While streaming, an element that was once returned is returned unchanged for every
 * longer content and for the finished message.
 */
export function parseMarkup(content: string, { streaming = false }: MarkupOptions = {}): Block[] {
  const lines = content.replace(/\r\n?/g, "\n");
  // Finished content gets a final line break, so that a line without one is always incomplete.
  const scan = scanBlocks(streaming ? lines : `${lines}\n`, streaming);
  return buildTree(scan);
}

/** The line that ends the code block at the end of the content, so that what follows is not code; null if there is none. */
export function fenceToClose(content: string): string | null {
  const { fence } = scanBlocks(`${content.replace(/\r\n?/g, "\n")}\n`, false);
  // A block inside of a quote or a list ends with it.
  return fence?.depth === 0 ? fence.mark.repeat(fence.size) : null;
}

/** The text outside of code, by the rules of CommonMark. A space replaces each piece of code. */
export function withoutCode(content: string): string {
  return scanBlocks(`${content.replace(/\r\n?/g, "\n")}\n`, false).prose.join(" ");
}

/** The usernames of the handles in a message outside of code, in lowercase and in order. */
export function mentionedHandles(content: string): string[] {
  if (!content.includes("@")) return [];
  return [...new Set(handlesIn(withoutCode(content)).map(({ username }) => username))];
}

/** A preview in one line: text without Markdown syntax, elements by their labels. */
export function plainText(content: string, maxLength = 200): string {
  const parts: string[] = [];
  let length = 0;
  for (const block of everyBlock(parseMarkup(content))) {
    const part = shorten(describe(block, maxLength), maxLength);
    if (part !== "") parts.push(part);
    length += part.length;
    if (length > maxLength) break;
  }
  return shorten(parts.join(" · "), maxLength);
}

/** A button with its label, or a form with the labels of its fields by their names. */
export interface Component {
  label: string | null;
  labels: ReadonlyMap<string, string>;
}

/** The button or form of a message with the given action; null if there is none. */
export function componentOf(content: string, action: string): Component | null {
  for (const block of everyBlock(parseMarkup(content))) {
    if (block.type === "button" && block.action === action) {
      return { label: block.label, labels: new Map() };
    }
    if (block.type === "form" && action === `form_submit:${block.id}`) {
      return { label: null, labels: new Map(block.children.flatMap(labelOf)) };
    }
  }
  return null;
}

const labelOf = (child: FormBlock["children"][number]): [string, string][] =>
  child.type === "input" || child.type === "select" ? [[child.name, child.label]] : [];

/** The actions of all buttons and the ids of all forms in a message. */
export function actionTokens(content: string): { actions: Set<string>; forms: Set<string> } {
  const actions = new Set<string>();
  const forms = new Set<string>();
  for (const block of everyBlock(parseMarkup(content))) {
    if (block.type === "button") actions.add(block.action);
    if (block.type === "form") forms.add(block.id);
  }
  return { actions, forms };
}
