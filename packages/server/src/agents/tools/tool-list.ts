import { z } from "zod";
import { visibleText } from "../../rules/quoting.ts";
import type { ToolRecord } from "../../store/tools.ts";

const MAX_TOOLS = 128;
const MAX_DESCRIPTION_CHARACTERS = 4096;
const MAX_TITLE_CHARACTERS = 128;
const MAX_SCHEMA_CHARACTERS = 32_768;
/** Of all tools of a server: everything that is listed for its owner and sent to models. */
const MAX_LIST_BYTES = 262_144;

/** The names that the MCP specification allows. */
const TOOL_NAME = /^[A-Za-z0-9_./-]{1,128}$/;

const SentTool = z.object({
  name: z.string().regex(TOOL_NAME),
  title: z.string().optional().catch(undefined),
  description: z.string().optional().catch(undefined),
  inputSchema: z.looseObject({ type: z.literal("object") }),
  annotations: z.object({ title: z.string().optional() }).optional().catch(undefined),
});

/**
 * The tools of a server's answer, within bounds. Those that cannot be used are left out: with invalid
 * names, names that another tool has, schemas that are too long or have characters that cannot be
 * stored, and what is beyond the limits.
 */
export function toolList(sent: readonly unknown[]): ToolRecord[] {
  const tools = new Map<string, ToolRecord>();
  let left = MAX_LIST_BYTES;
  for (const each of sent) {
    if (tools.size >= MAX_TOOLS) break;
    const parsed = SentTool.safeParse(each);
    if (!parsed.success || tools.has(parsed.data.name)) continue;
    const tool = toolRecord(parsed.data);
    left -= tool ? Buffer.byteLength(JSON.stringify(tool)) : 0;
    if (left < 0) break;
    if (tool) tools.set(tool.name, tool);
  }
  return [...tools.values()];
}

function toolRecord(sent: z.infer<typeof SentTool>): ToolRecord | null {
  const { name, description = "", inputSchema } = sent;
  const schema = JSON.stringify(inputSchema);
  if (schema.length > MAX_SCHEMA_CHARACTERS || UNSTORABLE.test(schema)) return null;
  const title = sent.title ?? sent.annotations?.title ?? "";
  return {
    name,
    title: visibleText(cut(title.replace(/\s+/g, " ").trim(), MAX_TITLE_CHARACTERS)),
    description: cut(description, MAX_DESCRIPTION_CHARACTERS),
    input_schema: inputSchema,
    fingerprint: Bun.SHA256.hash(JSON.stringify([description, schema]), "hex"),
  };
}

/** NUL and lone surrogates in JSON: PostgreSQL cannot store them. */
const UNSTORABLE = /\\u(0000|d[89a-f])/i;

function cut(text: string, most: number): string {
  const clean = text
    .slice(0, most * 2)
    .toWellFormed()
    .replaceAll("\0", "");
  return [...clean].slice(0, most).join("");
}
