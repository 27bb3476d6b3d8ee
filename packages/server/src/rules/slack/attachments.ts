import type { SlackAttachment } from "@parley/protocol/inbound/slack";
import { imageRuns, inOneLine, linkRuns, type Part, renderBlocks } from "./blocks.ts";
import { type Run, renderLine } from "./inline.ts";
import { quoteLine, renderText, runsOf, type Syntax, stack } from "./mrkdwn.ts";
import { renderTime } from "./rich-text.ts";

/** An attachment: its `pretext`, and a block quote with the rest. */
export function renderAttachment(attachment: SlackAttachment): Part[] {
  const { pretext, fallback } = attachment;
  const before = pretext ? [renderText(pretext, syntaxOf(attachment, "pretext"))] : [];
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
        text ? renderText(text, syntaxOf(attachment, "text")) : [],
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
    ? textRuns(title).map((run) => ({
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

const textRuns = (text: string) => runsOf(text, "plain");

function fieldLines(attachment: SlackAttachment): Part[] {
  const syntax = syntaxOf(attachment, "fields");
  return (attachment.fields ?? []).map(({ title, value }) => {
    const name = title?.trim() ? renderLine([{ text: `${title.trim()}:`, bold: true }]) : "";
    const [first = "", ...rest] = value ? renderText(value, syntax) : [];
    // A code block or quote begins on a line of its own.
    const begins = /^(?:`{3}|>)/.test(first) ? [name, first] : [`${name} ${first}`.trim()];
    return [...begins.filter((line) => line !== ""), ...rest];
  });
}

function footLine({ footer, ts }: SlackAttachment): string[] {
  const time = ts ? renderTime(ts) : null;
  const texts = [...(footer?.trim() ? [footer.trim()] : []), ...(time ? [time] : [])];
  return texts.length === 0 ? [] : [renderLine([{ text: texts.join(" · "), italic: true }])];
}

/** Without `mrkdwn_in`, all of these texts may have emphasis. */
const syntaxOf = ({ mrkdwn_in }: SlackAttachment, field: "text" | "pretext" | "fields"): Syntax =>
  !mrkdwn_in || mrkdwn_in.includes(field) ? "mrkdwn" : "links";

const quoted = (parts: Part[]): Part =>
  parts.flatMap((part, index) => [...(index > 0 ? [""] : []), ...part]).map(quoteLine);

const SIGNS: Record<string, string> = { good: "🟢", warning: "🟡", danger: "🔴" };

/** The color of the bar that Slack shows beside an attachment. */
function signOf(color: string): string {
  const named = Object.hasOwn(SIGNS, color) ? SIGNS[color] : undefined;
  if (named !== undefined) return named;
  const hex = /^#?([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(color)?.slice(1);
  if (hex === undefined) return "";
  const [red = 0, green = 0, blue = 0] = hex.map((part) => Number.parseInt(part, 16));
  return signOfHue(red, green, blue);
}

function signOfHue(red: number, green: number, blue: number): string {
  const highest = Math.max(red, green, blue);
  const range = highest - Math.min(red, green, blue);
  if (range < 32) return highest < 96 ? "⚫" : "⚪";
  const sector =
    highest === red
      ? (green - blue) / range
      : highest === green
        ? 2 + (blue - red) / range
        : 4 + (red - green) / range;
  const hue = (sector * 60 + 360) % 360;
  const [, sign = "🔴"] = HUES.find(([limit]) => hue < limit) ?? [];
  return sign;
}

/** The sign for hues below each limit, in degrees. Above the last it is red again. */
const HUES: [limit: number, sign: string][] = [
  [15, "🔴"],
  [40, "🟠"],
  [70, "🟡"],
  [170, "🟢"],
  [255, "🔵"],
  [330, "🟣"],
];
