import {
  type AssistantPart,
  joinRoles,
  joinTexts,
  type ModelMessage,
  type ToolResultPart,
  type ToolUsePart,
  type UserPart,
} from "./model-content.ts";
import { indentLines } from "./quoting.ts";

/** What providers may refuse in messages, and the same messages without it. */

const have = (messages: readonly ModelMessage[], is: (part: UserPart | AssistantPart) => unknown) =>
  messages.some(({ content }) => content.some(is));

const isFile = ({ type }: UserPart | AssistantPart) => type === "image" || type === "file";

export const haveCalls = (messages: readonly ModelMessage[]) =>
  have(messages, ({ type }) => type === "tool_use");

export const haveFiles = (messages: readonly ModelMessage[]) => have(messages, isFile);

/** Whether messages have what only a provider understands: fields of calls, or thoughts. */
export const haveProviderFields = (messages: readonly ModelMessage[]) =>
  have(messages, (part) => part.type === "tool_use" && (part.provider_fields || part.thoughts));

export const withoutProviderFields = (messages: readonly ModelMessage[]): ModelMessage[] =>
  messages.map((message) =>
    message.role === "assistant" ? { ...message, content: message.content.map(plain) } : message,
  );

function plain(part: AssistantPart): AssistantPart {
  if (part.type !== "tool_use") return part;
  const { thoughts: _, provider_fields: __, ...rest } = part;
  return rest;
}

const WHY_REFUSED = {
  not_accepted: "was not accepted",
  too_large: "is missing: the request was too large with its files",
};

/** For a model that does not accept files. It is told why. */
export function withoutFiles(
  messages: readonly ModelMessage[],
  why: keyof typeof WHY_REFUSED,
): ModelMessage[] {
  const text = `(The file that should be here ${WHY_REFUSED[why]}, so you cannot see its content.)`;
  const visible = (part: UserPart) => (isFile(part) ? ({ type: "text", text } as const) : part);
  return messages.map((message) =>
    message.role === "user" ? { ...message, content: message.content.map(visible) } : message,
  );
}

/**
 * Calls and their results as texts of the user: some providers refuse a call without the thoughts
 * before it, and those are gone after an approval.
 */
export function callsAsText(messages: readonly ModelMessage[]): ModelMessage[] {
  const asked = new Map<string, ToolUsePart>();
  const told = messages.map((message): ModelMessage => {
    if (message.role === "user") {
      const parts = message.content.flatMap((part) =>
        part.type === "tool_result" ? resultParts(part, asked.get(part.tool_use_id)) : [part],
      );
      return { role: "user", content: joinTexts(parts) };
    }
    for (const part of message.content) if (part.type === "tool_use") asked.set(part.id, part);
    return { role: "assistant", content: message.content.filter(({ type }) => type === "text") };
  });
  return joinRoles(told.filter(({ content }) => content.length > 0));
}

function resultParts({ content, is_error }: ToolResultPart, call?: ToolUsePart): UserPart[] {
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const called = `you called the tool ${call?.name} with ${JSON.stringify(call?.input)}`;
  const result = `(${called}; ${is_error ? "it failed" : "it returned"}:) ${texts.join("\n\n")}`;
  return [
    { type: "text", text: indentLines(result) },
    ...content.filter(({ type }) => type !== "text"),
  ];
}
