import type {
  AssistantPart,
  FilePart,
  ImagePart,
  ModelMessage,
  TextPart,
  ToolDefinition,
  ToolResultPart,
  ToolUsePart,
  UserPart,
} from "../../rules/model-content.ts";
import { plainName, quoteName } from "../../rules/quoting.ts";
import { fileAsText } from "./file-text.ts";
import { objectSchema } from "./wire.ts";

/** One message can become several: each tool result is a message of its own in this API. */
export const encodeMessage = (message: ModelMessage): object[] =>
  message.role === "assistant"
    ? [encodeAssistantMessage(message.content)]
    : encodeUserMessage(message.content);

/** OpenAI rejects longer descriptions. */
const MAX_DESCRIPTION_CHARACTERS = 1024;

export const encodeTool = ({ name, description, input_schema }: ToolDefinition): object => ({
  type: "function",
  function: {
    name,
    ...(description !== "" && { description: shortened(description) }),
    parameters: objectSchema(input_schema),
  },
});

const shortened = (text: string) =>
  text.length <= MAX_DESCRIPTION_CHARACTERS
    ? text
    : `${text.slice(0, MAX_DESCRIPTION_CHARACTERS - 1).toWellFormed()}…`;

function encodeAssistantMessage(parts: readonly AssistantPart[]): object {
  const texts = parts.filter((part) => part.type === "text");
  const calls = parts.filter((part) => part.type === "tool_use");
  return {
    ...Object.assign({}, ...calls.flatMap(({ thoughts = [] }) => thoughts)),
    role: "assistant",
    content: texts.length === 0 ? null : encodeContent(texts),
    ...(calls.length > 0 && { tool_calls: calls.map(encodeToolUse) }),
  };
}

const encodeToolUse = ({ id, name, input, provider_fields }: ToolUsePart): object => ({
  ...provider_fields,
  id,
  type: "function",
  function: { name, arguments: JSON.stringify(input) },
});

function encodeUserMessage(parts: readonly UserPart[]): object[] {
  const results = parts.filter((part) => part.type === "tool_result");
  const shown = [
    ...results.flatMap(attachmentsOf),
    ...parts.filter((part) => part.type !== "tool_result"),
  ];
  return [
    ...results.map(encodeToolResult),
    ...(shown.length === 0 ? [] : [{ role: "user", content: encodeContent(shown) }]),
  ];
}

/** The API has no field for a failed call, so the text says that it failed. */
const encodeToolResult = ({ tool_use_id, content, is_error }: ToolResultPart): object => ({
  role: "tool",
  tool_call_id: tool_use_id,
  content: (is_error ? "Error: " : "") + content.map(resultText).join("\n\n"),
});

/** Tool messages hold only text: images and PDF follow in the next user message. */
function resultText(part: ShownPart): string {
  const shown = otherFilesAsText(part);
  if (shown.type === "text") return shown.text;
  return shown.type === "file"
    ? `(The file ${quoteName(shown.name)} follows in the next message.)`
    : "(An image follows in the next message.)";
}

const attachmentsOf = ({ content }: ToolResultPart): ShownPart[] =>
  content.filter((part) => otherFilesAsText(part).type !== "text");

type ShownPart = TextPart | ImagePart | FilePart;

/** A single text is sent as a plain string, anything else as a list of content parts. */
function encodeContent(parts: readonly ShownPart[]): string | object[] {
  const [first] = parts;
  return first?.type === "text" && parts.length === 1 ? first.text : parts.map(encodePart);
}

function encodePart(part: ShownPart): object {
  const shown = otherFilesAsText(part);
  switch (shown.type) {
    case "text":
      return { type: "text", text: shown.text };
    case "image":
      return { type: "image_url", image_url: { url: dataUrl(shown) } };
    case "file":
      return { type: "file", file: { filename: plainName(shown.name), file_data: dataUrl(shown) } };
  }
}

/** PDF is the only type of file that the API accepts. */
function otherFilesAsText(part: ShownPart): ShownPart {
  if (part.type !== "file" || part.media_type === "application/pdf") return part;
  return { type: "text", text: fileAsText(part) };
}

const dataUrl = ({ media_type, data }: ImagePart | FilePart) =>
  `data:${media_type};base64,${data.toBase64()}`;
