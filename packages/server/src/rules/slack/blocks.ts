import type { SlackBlock, SlackElement, SlackText } from "@parley/protocol/inbound/slack";
import { type Run, renderLine } from "./inline.ts";
import { renderText, runsOf } from "./mrkdwn.ts";

/** The parts of a message, each with its lines. A blank line separates parts. */
export type Part = string[];

export const renderBlocks = (blocks: readonly (SlackBlock | null)[]): Part[] =>
  blocks.flatMap((block) => (block === null ? [] : renderBlock(block)));

function renderBlock(block: SlackBlock): Part[] {
  switch (block.type) {
    case "section": {
      const { text, fields, accessory } = block;
      const paragraphs = [...(text ? [text] : []), ...(fields ?? [])].map(renderTextObject);
      return [...paragraphs, renderElements([accessory ?? null])];
    }
    case "header":
      return [renderHeading(block.text.text)];
    case "divider":
      return [["---"]];
    case "context":
    case "actions":
      return [renderElements(block.elements)];
    case "image": {
      const title = block.title ? renderTextObject(block.title) : [];
      return [[...title, ...inOneLine([imageRuns(block.image_url, block.alt_text)])]];
    }
    case "markdown":
      // As it came. Whether the whole message is inert is checked in the end.
      return [block.text.trim().split("\n")];
  }
}

const syntaxOf = (type: string | null | undefined) => (type === "mrkdwn" ? "mrkdwn" : "plain");

const renderTextObject = ({ type, text }: SlackText) => renderText(text, syntaxOf(type));

function renderHeading(text: string): Part {
  const heading = renderLine(runsOf(text, "plain"));
  // Number signs at the end would be removed.
  return heading === "" ? [] : [`### ${heading.replace(/(?<!#)#+$/, "\\$&")}`];
}

/** Elements that Slack shows beside each other. Those that need an app to respond are left out. */
function renderElements(elements: readonly (SlackElement | null)[]): Part {
  return inOneLine(elements.map((element) => (element === null ? [] : elementRuns(element))));
}

function elementRuns(element: SlackElement): Run[] {
  if (element.type === "image") return imageRuns(element.image_url, element.alt_text);
  if (element.type === "button") return linkRuns(element.text.text, element.url);
  return runsOf(element.text, syntaxOf(element.type));
}

type OptionalText = string | null | undefined;

export const imageRuns = (url: OptionalText, description?: OptionalText): Run[] =>
  url ? [{ text: description?.trim() || "image", url, image: true }] : [];

export const linkRuns = (label: OptionalText, url: OptionalText): Run[] =>
  url ? [{ text: label?.trim() || url, url }] : [];

/** One line with a separator between the items, or none if all items are empty. */
export function inOneLine(items: readonly Run[][]): Part {
  const shown = items.filter((runs) => runs.some(({ text }) => text.trim() !== ""));
  const line = shown.flatMap((runs, index) => (index > 0 ? [{ text: " · " }, ...runs] : runs));
  return line.length > 0 ? [renderLine(line)] : [];
}
