import type {
  SlackAttachment,
  SlackBlock,
  SlackElement,
  SlackText,
} from "@parley/protocol/inbound/slack";
import { type Run, renderLine } from "./inline.ts";
import { quoteLine, renderText, runsOf, type Syntax, stack } from "./mrkdwn.ts";

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

const imageRuns = (url: OptionalText, description?: OptionalText): Run[] =>
  url ? [{ text: description?.trim() || "image", url, image: true }] : [];

const linkRuns = (label: OptionalText, url: OptionalText): Run[] =>
  url ? [{ text: label?.trim() || url, url }] : [];

/** One line with a separator between the items, or none if all items are empty. */
function inOneLine(items: readonly Run[][]): Part {
  const shown = items.filter((runs) => runs.some(({ text }) => text.trim() !== ""));
  const line = shown.flatMap((runs, index) => (index > 0 ? [{ text: " · " }, ...runs] : runs));
  return line.length > 0 ? [renderLine(line)] : [];
}

/** An attachment: its `pretext`, and a block quote with the rest. */
export function renderAttachment(attachment: SlackAttachment): Part[] {
  const { pretext, fallback } = attachment;
  const before = pretext ? [renderText(pretext, attachmentSyntax(attachment, "pretext"))] : [];
  const inside = partsOf(attachment).filter((part) => part.length > 0);
  if (inside.length > 0) return [...before, quoted(inside)];
  return before.length > 0 || !fallback ? before : [quoted([renderText(fallback, "links")])];
}

function partsOf(attachment: SlackAttachment): Part[] {
  const { text, blocks, actions, image_url, thumb_url } = attachment;
  const links = (actions ?? []).map(({ text: label, url }) => linkRuns(label, url));
  return [
    [
      ...stack([
        headLines(attachment),
        text ? renderText(text, attachmentSyntax(attachment, "text")) : [],
        ...fieldLines(attachment),
      ]),
    ],
    ...renderBlocks(blocks ?? []),
    [
      ...inOneLine([imageRuns(image_url || thumb_url)]),
      ...inOneLine(links),
      ...footLine(attachment),
    ],
  ];
}

/** The author, and the title with a sign for the color. */
function headLines({ author_name, author_link, title, title_link, color }: SlackAttachment) {
  const author: Run[] = author_name ? [{ text: author_name, url: author_link }] : [];
  const heading: Run[] = title
    ? runsOf(title, "plain").map((run) => ({
        ...run,
        bold: true,
        bare: false,
        url: title_link ?? run.url,
      }))
    : [];
  const sign: Run[] = color && signOf(color) !== "" ? [{ text: `${signOf(color)} ` }] : [];
  return [author, heading]
    .filter((line) => line.length > 0)
    .map((line, index) => renderLine(index === 0 ? [...sign, ...line] : line));
}

function fieldLines(attachment: SlackAttachment): Part[] {
  const syntax = attachmentSyntax(attachment, "fields");
  return (attachment.fields ?? []).map(({ title, value }) => {
    const name = title?.trim() ? renderLine([{ text: `${title.trim()}:`, bold: true }]) : "";
    const [first = "", ...rest] = value ? renderText(value, syntax) : [];
    // A code block or quote begins on a line of its own.
    const begins = /^(?:`{3}|>)/.test(first) ? [name, first] : [`${name} ${first}`.trim()];
    return [...begins.filter((line) => line !== ""), ...rest];
  });
}

/** A time in seconds, as text. Null if it is none. */
function renderTime(seconds: string): string | null {
  const time = new Date(Number.parseFloat(seconds) * 1000);
  if (Number.isNaN(time.getTime())) return null;
  return `${time.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function footLine({ footer, ts }: SlackAttachment): string[] {
  const time = ts ? renderTime(ts) : null;
  const texts = [...(footer?.trim() ? [footer.trim()] : []), ...(time ? [time] : [])];
  return texts.length === 0 ? [] : [renderLine([{ text: texts.join(" · "), italic: true }])];
}

/** Without `mrkdwn_in`, all of these texts may have emphasis. */
const attachmentSyntax = (
  { mrkdwn_in }: SlackAttachment,
  field: "text" | "pretext" | "fields",
): Syntax => (!mrkdwn_in || mrkdwn_in.includes(field) ? "mrkdwn" : "links");

const quoted = (parts: Part[]): Part =>
  parts.flatMap((part, index) => [...(index > 0 ? [""] : []), ...part]).map(quoteLine);

/** Slack's names of colors. */
const NAMED: Record<string, string> = { good: "00a040", warning: "ffdc00", danger: "ff0000" };
const SIGNS: [sign: string, red: number, green: number, blue: number][] = [
  ["🔴", 255, 0, 0],
  ["🟠", 255, 140, 0],
  ["🟡", 255, 220, 0],
  ["🟢", 0, 160, 64],
  ["🔵", 40, 120, 255],
  ["🟣", 128, 0, 200],
  ["⚫", 0, 0, 0],
  ["⚪", 255, 255, 255],
];

/** The sign that is nearest to the color of the bar that Slack shows beside an attachment. */
function signOf(color: string): string {
  const named = Object.hasOwn(NAMED, color) ? NAMED[color] : undefined;
  const hex = /^#?([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(named ?? color)?.slice(1);
  if (hex === undefined) return "";
  const [red = 0, green = 0, blue = 0] = hex.map((part) => Number.parseInt(part, 16));
  const distances = SIGNS.map(([, r, g, b]) => Math.hypot(r - red, g - green, b - blue));
  return SIGNS[distances.indexOf(Math.min(...distances))]?.[0] ?? "";
}
