import { parseSlackPayload, type SlackPayload } from "@parley/protocol/inbound/slack";
import { mentionedHandles, parseMarkup } from "@parley/protocol/markup";
import { MAX_CONTENT_BYTES } from "@parley/protocol/operations/messages";
import { badField, badFields } from "./failure.ts";
import { type Part, renderAttachment, renderBlocks } from "./slack/blocks.ts";
import { renderText } from "./slack/mrkdwn.ts";

/** Turns the body of a Slack incoming webhook into the Markdown of a message. */

/**
 * The content of the message for the body of a request: JSON, or a form with the JSON in its field
 * `payload`. The content is not empty, has at most `MAX_CONTENT_BYTES`, mentions nobody and contains no
 * components. Throws a `Failure` (`bad_request`) that describes what is wrong, and nothing else.
 */
export function slackContent(body: string): string {
  const parsed = parseSlackPayload(readJson(body));
  if ("problems" in parsed) throw badFields(parsed.problems);
  const content = joinParts(partsOf(parsed.payload));
  if (content === "") throw badField("payload", "has nothing to show");
  if (isInert(content)) return content;
  // Only a `markdown` block, which is passed on as it came, can cause this.
  return joinParts([renderText(content, "plain")]);
}

function readJson(body: string): unknown {
  const isForm = !body.trimStart().startsWith("{");
  const json = isForm ? new URLSearchParams(body).get("payload") : body;
  if (json === null) throw badField("payload", "must be JSON, or a form field with JSON");
  try {
    return JSON.parse(json);
  } catch {
    throw badField("payload", "is not valid JSON");
  }
}

/**
 * Renders parts as they are read, so that nothing is rendered beyond the limit of a message. If there
 * are blocks, the text is only a short form of them.
 */
function* partsOf({ text, mrkdwn, blocks, attachments }: SlackPayload): Generator<Part> {
  const budget = createBudget();
  let hasBlocks = false;
  for (const block of blocks ?? []) {
    if (budget.isExceeded()) break;
    for (const part of renderBlocks([budget.take(block)])) {
      if (part.length === 0) continue;
      hasBlocks = true;
      yield part;
    }
  }
  if (!hasBlocks && text) {
    yield renderText(budget.take(text), mrkdwn === false ? "links" : "mrkdwn");
  }
  for (const { fallback, ...attachment } of attachments ?? []) {
    if (budget.isExceeded()) break;
    // The fallback is last, because it is shown only if there is nothing else.
    yield* renderAttachment({ ...budget.take(attachment), fallback: budget.take(fallback) });
  }
  if (budget.isExceeded()) yield ["…"];
}

const TRUNCATED = "\n\n…";

/** Joins parts up to the limit. Lines are whole, so that no code or escape is cut open. */
function joinParts(parts: Iterable<Part>): string {
  let content = "";
  let bytes = Buffer.byteLength(TRUNCATED);
  for (const part of parts) {
    for (const [index, line] of part.entries()) {
      const separator = content === "" ? "" : index === 0 ? "\n\n" : "\n";
      bytes += Buffer.byteLength(separator + line);
      if (bytes > MAX_CONTENT_BYTES) return (content + TRUNCATED).trim();
      content += separator + line;
    }
  }
  return content.trim() === "" ? "" : content;
}

const isInert = (content: string) =>
  mentionedHandles(content).length === 0 &&
  parseMarkup(content).every(({ type }) => type === "markdown");

/** Code units of a payload that are rendered. A message has room for fewer. */
const MAX_CHARACTERS = 40_000;

/** Limits how much of a payload is rendered, and so what that costs. */
function createBudget() {
  let left = MAX_CHARACTERS;
  let isExceeded = false;

  function takeText(text: string, key: string): string {
    if (key === "type") return text;
    if (isExceeded) return "";
    if (text.length <= left) {
      left -= text.length;
      return text;
    }
    isExceeded = true;
    // A part of an address would lead elsewhere.
    return /(?:url|link)$/.test(key) ? "" : cutText(text.slice(0, left));
  }

  function takeAny(value: unknown, key: string): unknown {
    if (typeof value === "string") return takeText(value, key);
    if (Array.isArray(value)) {
      return value.flatMap((item) => (isExceeded ? [] : [takeAny(item, key)]));
    }
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value).map(([name, each]) => [name, takeAny(each, name)]);
    return Object.fromEntries(entries);
  }

  return {
    /** Whether something was cut. Everything after it is left out. */
    isExceeded: () => isExceeded,
    /** A value of a payload with its texts, as far as the budget allows. */
    take: <Value>(value: Value) => takeAny(value, "") as Value,
  };
}

/** The start of a text up to a line break, or else a space, so that no address in it is cut. */
const cutText = (start: string) =>
  start.slice(0, Math.max(start.lastIndexOf("\n"), 0) || Math.max(start.lastIndexOf(" "), 0));
