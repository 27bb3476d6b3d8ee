import type { CallToolResult } from "@modelcontextprotocol/server";
import { type Failure, failure } from "../../rules/failure.ts";
import type { Asked } from "./ask-agent.ts";

/** Enough for the longest message, and for a page of usual ones. */
const MAX_RESULT_BYTES = 256 * 1024;

/** The lengths to which long texts of a result that is too large are cut, one after the other. */
const CUT_CHARACTERS = [4000, 1000, 200];

type Fields = Readonly<Record<string, unknown>>;

/** The result of a tool: as text, and as a record for programs. */
export function toolResult(record: Fields, text?: string): CallToolResult {
  const fits = (each: Fields) => Buffer.byteLength(JSON.stringify(each)) <= MAX_RESULT_BYTES;
  if (fits(record)) return shown(record, text ?? JSON.stringify(record));
  for (const most of CUT_CHARACTERS) {
    const shorter = cut(record, most) as Fields;
    const note = `(Texts are cut to ${most} characters. get_message returns one message whole.)`;
    if (fits(shorter)) {
      return shown(shorter, `${text ? cut(text, most) : JSON.stringify(shorter)}\n${note}`);
    }
  }
  const why = `the result has more than ${MAX_RESULT_BYTES} bytes, ask for less with limit`;
  return toolError(failure("payload_too_large", why));
}

const shown = (record: Fields, text: string): CallToolResult => ({
  content: [{ type: "text", text }],
  structuredContent: { ...record },
});

/** A failure, which the model that called the tool can read. */
export const toolError = ({ code, message, parameters }: Failure): CallToolResult => ({
  isError: true,
  content: [{ type: "text", text: `${message} (${code})` }],
  structuredContent: { error: { code, message, ...(parameters && { parameters }) } },
});

/** The answer as text for models, with what keeps it from being complete. */
export function askedResult(asked: Asked): CallToolResult {
  const text = [asked.answer?.content, noteOn(asked)].filter(Boolean).join("\n\n");
  const result = toolResult({ ...asked }, text);
  return asked.status === "failed" ? { ...result, isError: true } : result;
}

function noteOn({ status, answer, question }: Asked): string {
  switch (status) {
    case "complete":
      return "";
    case "stopped":
      return "(The answer was stopped.)";
    case "failed":
      return `(The answer failed: ${answer?.turn?.error?.code})`;
    case "approval_pending": {
      const pending = answer?.tool_calls.filter((each) => each.status === "pending") ?? [];
      const names = pending.map(({ server, tool }) => `${tool} of ${server}`).join(", ");
      return `(The agent's owner must approve before it goes on: ${names}.)`;
    }
    case "waiting":
      return `(There is no answer yet. Read it later: get_chat_history with chat_id ${question.conversation_id} and after ${question.id}.)`;
  }
}

/** The value with every text cut to a number of characters. */
function cut(value: unknown, most: number): unknown {
  if (typeof value === "string")
    return value.length > most ? `${value.slice(0, most).toWellFormed()}…` : value;
  if (Array.isArray(value)) return value.map((each) => cut(each, most));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, cut(each, most)]));
}
