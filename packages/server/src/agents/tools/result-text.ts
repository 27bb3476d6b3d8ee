import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/client";

const MAX_RESULT_BYTES = 65_536;
const CUT_NOTE = "\n[The result was cut here: it is longer than 64 KiB.]";
const MAX_ADDRESS_CHARACTERS = 512;

/** The outcome of a call, for the model. */
export interface ToolResult {
  /** At most 64 KiB of UTF-8. */
  readonly text: string;
  readonly is_error: boolean;
}

export function toolResult({ content, structuredContent, isError }: CallToolResult): ToolResult {
  const parts = content.map(describe);
  // A server repeats structured content as text, unless it has only clients that read the former.
  if (parts.length === 0 && structuredContent !== undefined) {
    parts.push(JSON.stringify(structuredContent));
  }
  return { text: boundedText(parts.join("\n")), is_error: isError === true };
}

export const failedCall = (why: string): ToolResult => ({ text: boundedText(why), is_error: true });

function describe(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `[${block.type}, ${block.mimeType}, ${bytesOf(block.data)} bytes]`;
    case "resource_link":
      return `[resource ${block.name}, ${address(block.uri)}]`;
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return resource.text;
      const type = resource.mimeType ?? "unknown type";
      return `[resource ${address(resource.uri)}, ${type}, ${bytesOf(resource.blob)} bytes]`;
    }
  }
}

const address = (uri: string) => uri.slice(0, MAX_ADDRESS_CHARACTERS);

/** About: of base64. */
const bytesOf = (data: string) => Math.floor((data.length * 3) / 4);

/** Well-formed text without NUL, which cannot be stored everywhere, and within the limit. */
function boundedText(text: string): string {
  const clean = text
    .slice(0, MAX_RESULT_BYTES + 1)
    .toWellFormed()
    .replaceAll("\0", "");
  const bytes = new TextEncoder().encode(clean);
  if (bytes.length <= MAX_RESULT_BYTES && text.length <= MAX_RESULT_BYTES) return clean;
  let end = MAX_RESULT_BYTES - CUT_NOTE.length;
  // Not inside of a character: its later bytes begin with the bits 10.
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return new TextDecoder().decode(bytes.subarray(0, end)) + CUT_NOTE;
}
