import type {
  AssistantPart,
  FilePart,
  ModelMessage,
  TextPart,
  ToolResultPart,
  UserPart,
} from "../../rules/model-content.ts";
import { plainName } from "../../rules/quoting.ts";
import { decodeText, fileAsText, isTextFile } from "./file-text.ts";

/** Encodes a message for Anthropic's Messages API. */
export const encodeMessage = ({ role, content }: ModelMessage) => ({
  role,
  content: encodeContent(toolResultsFirst(content)),
});

type Part = UserPart | AssistantPart;

/** The API rejects a message whose tool results come after other content. */
const toolResultsFirst = (parts: readonly Part[]): readonly Part[] => [
  ...parts.filter(({ type }) => type === "tool_result"),
  ...parts.filter(({ type }) => type !== "tool_result"),
];

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
      return { type: "tool_use", id: part.id, name: part.name, input: part.input };
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

const encodeToolResult = ({ tool_use_id, content, is_error }: ToolResultPart): object => ({
  type: "tool_result",
  tool_use_id,
  ...(content.length > 0 && { content: encodeContent(content) }),
  ...(is_error && { is_error }),
});
