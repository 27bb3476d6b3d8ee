import type { SlackInline, SlackRichText } from "@parley/protocol/inbound/slack";
import { linesOf, type Run, renderLine } from "./inline.ts";
import { codeBlock, quoteLine } from "./mrkdwn.ts";

type List = Extract<SlackRichText, { type: "rich_text_list" }>;

/** The parts of a `rich_text` block: paragraphs, lists, quotes and code blocks. */
export function renderRichText(elements: readonly (SlackRichText | null)[]): string[][] {
  const parts: string[][] = [];
  let depth = -1;
  for (const element of elements) {
    if (element === null) continue;
    if (element.type === "rich_text_list") {
      // The levels of a nested list are lists that follow each other.
      const isContinued = depth >= 0;
      depth = Math.min(Math.max(element.indent ?? 0, 0), depth + 1);
      const items = renderList(element, depth);
      if (isContinued) parts.at(-1)?.push(...items);
      else parts.push(items);
    } else {
      depth = -1;
      parts.push(renderElement(element));
    }
  }
  return parts;
}

function renderElement({ type, elements }: Exclude<SlackRichText, List>): string[] {
  const runs = runsOf(elements);
  if (type === "rich_text_preformatted") return codeBlock(runs.map(({ text }) => text).join(""));
  const lines = linesOf(runs).map(renderLine);
  return type === "rich_text_quote" ? lines.map(quoteLine) : lines;
}

/** Three spaces indent an item below both `- ` and `1. `. */
const INDENTATION = "   ";

function renderList({ style, offset, elements }: List, depth: number): string[] {
  const first = Math.min(Math.max(offset ?? 0, 0), 999_999) + 1;
  return elements.flatMap((item, index) => {
    const line = renderLine(runsOf(item.elements));
    const marker = style === "ordered" ? `${first + index}.` : "-";
    return line === "" ? [] : [`${INDENTATION.repeat(depth)}${marker} ${line}`];
  });
}

const runsOf = (elements: readonly (SlackInline | null)[]): Run[] =>
  elements.flatMap((element) => (element === null ? [] : [runOf(element)]));

function runOf(element: SlackInline): Run {
  const { bold, italic, strike, code } = element.style ?? {};
  const look = {
    bold: bold ?? false,
    italic: italic ?? false,
    strike: strike ?? false,
    code: code ?? false,
  };
  if (element.type === "link") {
    return { ...look, text: element.text || element.url, url: element.url };
  }
  return { ...look, text: textOf(element) };
}

function textOf(element: Exclude<SlackInline, { type: "link" }>): string {
  switch (element.type) {
    case "text":
      return element.text;
    case "user":
      return `@${element.user_id}`;
    case "usergroup":
      return `@${element.usergroup_id}`;
    case "broadcast":
      return `@${element.range}`;
    case "channel":
      return `#${element.channel_id}`;
    case "emoji":
      return emojiOf(element.unicode ?? "") ?? `:${element.name}:`;
    case "date":
      return element.fallback || (renderTime(element.timestamp) ?? "");
    case "color":
      return element.value;
  }
}

/** Slack writes the code points of an emoji as `1f468-200d-1f4bb`. */
function emojiOf(codes: string): string | null {
  if (!/^[0-9a-f]{1,5}(?:-[0-9a-f]{1,5}){0,15}$/i.test(codes)) return null;
  const points = codes.split("-").map((code) => Number.parseInt(code, 16));
  const text = String.fromCodePoint(...points);
  return /^\p{RGI_Emoji}$/v.test(text) ? text : null;
}

/** A time in seconds, as text. Null if it is none. */
export function renderTime(seconds: string): string | null {
  const time = new Date(Number.parseFloat(seconds) * 1000);
  if (Number.isNaN(time.getTime())) return null;
  return `${time.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
