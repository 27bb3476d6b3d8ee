import type {
  AssistantPart,
  FilePart,
  ModelMessage,
  TextPart,
  ToolDefinition,
  ToolResultPart,
  UserPart,
} from "../../rules/model-content.ts";
import { plainName } from "../../rules/quoting.ts";
import { decodeText, fileAsText, isTextFile } from "./file-text.ts";
import { objectSchema } from "./wire.ts";

export function encodeMessage({ role, content }: ModelMessage) {
  const thoughts = content.flatMap((part) => (part.type === "tool_use" && part.thoughts) || []);
  const encoded = encodeContent(withoutBlankTexts(toolResultsFirst(content)));
  const isThought = thoughts.length > 0 && typeof encoded !== "string";
  return { role, content: isThought ? [...thoughts, ...encoded] : encoded };
}

export const encodeTool = ({ name, description, input_schema }: ToolDefinition): object => ({
  name,
  ...(description !== "" && { description }),
  input_schema: objectSchema(input_schema),
});

type Part = UserPart | AssistantPart;

/** The API rejects a message whose tool results come after other content. */
const toolResultsFirst = (parts: readonly Part[]): readonly Part[] => [
  ...parts.filter(({ type }) => type === "tool_result"),
  ...parts.filter(({ type }) => type !== "tool_result"),
];

/** The API rejects blank texts, which models write before calls. */
const withoutBlankTexts = (parts: readonly Part[]): readonly Part[] =>
  parts.some(({ type }) => type === "tool_use")
    ? parts.filter((part) => part.type !== "text" || part.text.trim() !== "")
    : parts;

/** A single text is sent as a plain string, anything else as a list of content blocks. */
function encodeContent(parts: readonly Part[]): string | object[] {
  const [first] = parts;
  return first?.type === "text" && parts.length === 1 ? first.text : parts.map(encodePart);
}

function encodePart(part: Part): object {
  switch (part.type) {
    case "text":
      return encodeText(part.text);
    case "image":
      return { type: "image", source: base64Source(part.media_type, part.data) };
    case "file":
      return encodeFile(part);
    case "tool_use":
      return { type: "tool_use", id: callId(part.id), name: part.name, input: part.input };
    case "tool_result":
      return encodeToolResult(part);
  }
}

const encodeText = (text: string): TextPart => ({ type: "text", text });

const base64Source = (media_type: string, data: Uint8Array) => ({
  type: "base64",
  media_type,
  data: data.toBase64(),
});

function encodeFile(file: FilePart): object {
  const { name, media_type, data } = file;
  if (media_type === "application/pdf") {
    return { type: "document", source: base64Source(media_type, data), title: plainName(name) };
  }
  // The API rejects an empty document.
  if (isTextFile(file) && data.length > 0) {
    const source = { type: "text", media_type: "text/plain", data: decodeText(file) };
    return { type: "document", source, title: plainName(name) };
  }
  return encodeText(fileAsText(file));
}

/** The API rejects failed results without a text or with anything else. */
function encodeToolResult({ tool_use_id, content, is_error }: ToolResultPart): object {
  const texts = content.filter(({ type }) => type === "text");
  const failure = texts.length > 0 ? texts : [{ type: "text", text: "The call failed." } as const];
  const shown = is_error ? failure : content;
  return {
    type: "tool_result",
    tool_use_id: callId(tool_use_id),
    ...(shown.length > 0 && { content: encodeContent(shown) }),
    ...(is_error && { is_error }),
  };
}

/** Ids of other providers may have characters that the API rejects. */
const callId = (id: string) => id.replaceAll(/[^\w-]/g, "_");
