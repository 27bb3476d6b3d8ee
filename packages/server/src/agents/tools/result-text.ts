import { z } from "zod";

export const MAX_RESULT_BYTES = 65_536;
const CUT_NOTE = "\n[The result was cut here: it is longer than 64 KiB.]";
const MAX_BLOCKS = 1000;
const MAX_LABEL_CHARACTERS = 512;

export const REFUSED = "The agent may not make this call any more.";

/** The outcome of a call, for the model. */
export interface ToolResult {
  /** At most 64 KiB of UTF-8, if a server sent it. */
  readonly text: string;
  readonly is_error: boolean;
  /** Present if the tool was not called, because it or its grant has changed: the owner decides. */
  readonly needs_approval?: true;
}

/**
 * The result of a call as a server sends it. The parts of its content are parsed one by one, and only
 * as many as the model is told: the client's own schema takes seconds for an answer of a megabyte.
 */
export const SentResult = z.looseObject({
  content: z.array(z.unknown()).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().optional(),
});

const label = z
  .string()
  .transform((text) => text.slice(0, MAX_LABEL_CHARACTERS))
  .catch("unknown");
const resource = z.union([
  z.object({ uri: label, text: z.string() }),
  z.object({ uri: label, mimeType: label, blob: z.string() }),
]);
const Block = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.enum(["image", "audio"]), mimeType: label, data: z.string() }),
  z.object({ type: z.literal("resource_link"), name: label, uri: label }),
  z.object({ type: z.literal("resource"), resource }),
]);

export function toolResult(sent: z.infer<typeof SentResult>): ToolResult {
  const { content, structuredContent, isError } = sent;
  const parts = content.slice(0, MAX_BLOCKS).map(describe);
  if (content.length > MAX_BLOCKS) parts.push(`[${content.length - MAX_BLOCKS} more parts]`);
  // A server repeats structured content as text, unless it has only clients that read the former.
  if (parts.length === 0 && structuredContent !== undefined) {
    parts.push(JSON.stringify(structuredContent));
  }
  return { text: boundedText(parts.join("\n")), is_error: isError === true };
}

export const failedCall = (why: string): ToolResult => ({ text: boundedText(why), is_error: true });

function describe(sent: unknown): string {
  const { data: block } = Block.safeParse(sent);
  switch (block?.type) {
    case undefined:
      return "[content of an unknown kind]";
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `[${block.type}, ${block.mimeType}, ${bytesOf(block.data)} bytes]`;
    case "resource_link":
      return `[resource ${block.name}, ${block.uri}]`;
    case "resource":
      return "text" in block.resource
        ? block.resource.text
        : `[resource ${block.resource.uri}, ${block.resource.mimeType}, ${bytesOf(block.resource.blob)} bytes]`;
  }
}

/** About: of base64. */
const bytesOf = (data: string) => Math.floor((data.length * 3) / 4);

/** Well-formed text without NUL, which cannot be stored everywhere, and within the limit. */
export function boundedText(text: string): string {
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
