import type { ModelMessage, ToolResultPart, ToolUsePart, UserPart } from "./model-content.ts";
import { indentLines } from "./quoting.ts";
import { joinRoles, joinTexts } from "./roles.ts";

export const haveCalls = (messages: readonly ModelMessage[]) =>
  messages.some(({ content }) => content.some(({ type }) => type === "tool_use"));

/**
 * The same messages with calls and their results as texts of the user: some providers refuse a call
 * without the thoughts before it, and those are gone after an approval.
 */
export function callsAsText(messages: readonly ModelMessage[]): ModelMessage[] {
  const asked = new Map<string, ToolUsePart>();
  const told = messages.map((message): ModelMessage => {
    if (message.role === "user") {
      const parts = message.content.flatMap((part) => userParts(part, asked));
      return { role: "user", content: joinTexts(parts) };
    }
    for (const part of message.content) if (part.type === "tool_use") asked.set(part.id, part);
    return { role: "assistant", content: message.content.filter(({ type }) => type === "text") };
  });
  return joinRoles(told.filter(({ content }) => content.length > 0));
}

const userParts = (part: UserPart, asked: ReadonlyMap<string, ToolUsePart>): UserPart[] =>
  part.type === "tool_result" ? resultParts(part, asked.get(part.tool_use_id)) : [part];

function resultParts({ content, is_error }: ToolResultPart, call?: ToolUsePart): UserPart[] {
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const called = `you called the tool ${call?.name} with ${JSON.stringify(call?.input)}`;
  const result = `(${called}; ${is_error ? "it failed" : "it returned"}:) ${texts.join("\n\n")}`;
  const text = indentLines(result);
  return [{ type: "text", text }, ...content.filter(({ type }) => type !== "text")];
}
