/**
 * The component markup: CommonMark with a handful of elements, and no other HTML.
 *
 * Parsing takes three steps, each linear in the length of the content:
 * lines tell code blocks from paragraphs, paragraphs give tags outside of code spans,
 * and tags, paired, give the tree. Whatever is not an element stays in the text around it.
 */

import { handlesIn } from "./handles.ts";
import { scanBlocks } from "./markup/blocks.ts";
import type { Block } from "./markup/elements.ts";
import { describe, shorten } from "./markup/text.ts";
import { buildTree, everyBlock } from "./markup/tree.ts";

export type {
  Block,
  ButtonBlock,
  CardBlock,
  FormBlock,
  InputField,
  InputType,
  MarkdownBlock,
  SelectField,
} from "./markup/elements.ts";
export { inertText, quotedText } from "./markup/text.ts";

export interface MarkupOptions {
  /** The content is still growing: what is not decided yet is left out instead of shown as text. */
  streaming?: boolean;
}

/**
 * Never throws. While streaming, an element that was there for a beginning of the content
 * is there, unchanged, for every longer one, and in the finished message.
 */
export function parseMarkup(content: string, { streaming = false }: MarkupOptions = {}): Block[] {
  const lines = content.replace(/\r\n?/g, "\n");
  // With a line break at the end of finished content every line is whole, so that
  // a line without one is known to be still growing.
  const scan = scanBlocks(streaming ? lines : `${lines}\n`, streaming);
  return buildTree(scan);
}

/** The text outside of code, as CommonMark sees it; where code stood its pieces stay apart. */
export function withoutCode(content: string): string {
  return scanBlocks(`${content.replace(/\r\n?/g, "\n")}\n`, false).prose.join(" ");
}

/** The usernames that a message's handles name, in lowercase and in order; not those in code. */
export function mentionedHandles(content: string): string[] {
  if (!content.includes("@")) return [];
  return [...new Set(handlesIn(withoutCode(content)).map(({ username }) => username))];
}

/** One line that says what a message is about: text without its markers, elements as their labels. */
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

/** The button or the form of a message that has an action; null when none has it. */
export function componentOf(content: string, action: string): { label: string | null } | null {
  for (const block of everyBlock(parseMarkup(content))) {
    if (block.type === "button" && block.action === action) return { label: block.label };
    if (block.type === "form" && action === `form_submit:${block.id}`) return { label: null };
  }
  return null;
}

/** What a message lets people press and submit. */
export function actionTokens(content: string): { actions: Set<string>; forms: Set<string> } {
  const actions = new Set<string>();
  const forms = new Set<string>();
  for (const block of everyBlock(parseMarkup(content))) {
    if (block.type === "button") actions.add(block.action);
    if (block.type === "form") forms.add(block.id);
  }
  return { actions, forms };
}
