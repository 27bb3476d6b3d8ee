/** Turns the body of a Slack incoming webhook into the Markdown of a message. */

import { mentionedHandles, parseMarkup } from "@parley/protocol/markup";
import { MAX_CONTENT_BYTES } from "@parley/protocol/operations/messages";
import { parseSlackPayload, type SlackPayload } from "@parley/protocol/slack";
import { badField, badFields } from "./failure.ts";
import { renderAttachment } from "./slack/attachments.ts";
import { type Part, renderBlocks } from "./slack/blocks.ts";
import { renderText } from "./slack/mrkdwn.ts";

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

/** If there are blocks, the text is only a short form of them. */
function partsOf({ text, mrkdwn, blocks, attachments }: SlackPayload): Part[] {
  const fromBlocks = renderBlocks(blocks ?? []).filter((part) => part.length > 0);
  const fromText = text ? [renderText(text, mrkdwn === false ? "links" : "mrkdwn")] : [];
  return [
    ...(fromBlocks.length > 0 ? fromBlocks : fromText),
    ...(attachments ?? []).flatMap(renderAttachment),
  ];
}

const TRUNCATED = "\n\n…";
const utf8 = new TextEncoder();

/** Joins parts up to the limit. Lines are whole, so that no code or escape is cut open. */
function joinParts(parts: readonly Part[]): string {
  let content = "";
  let bytes = utf8.encode(TRUNCATED).length;
  for (const part of parts) {
    for (const [index, line] of part.entries()) {
      const separator = content === "" ? "" : index === 0 ? "\n\n" : "\n";
      bytes += utf8.encode(separator + line).length;
      if (bytes > MAX_CONTENT_BYTES) return (content + TRUNCATED).trim();
      content += separator + line;
    }
  }
  return content.trim() === "" ? "" : content;
}

const isInert = (content: string) =>
  mentionedHandles(content).length === 0 &&
  parseMarkup(content).every(({ type }) => type === "markdown");
