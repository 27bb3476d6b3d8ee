import type { AssistantPart, ModelMessage } from "./model-content.ts";

/** Whether messages have what only a provider understands: fields of calls, or thoughts. */
export const haveProviderFields = (messages: readonly ModelMessage[]) =>
  messages.some(({ content }) =>
    content.some((part) => part.type === "tool_use" && (part.provider_fields || part.thoughts)),
  );

/** The same messages without these, for a provider that does not accept them. */
export const withoutProviderFields = (messages: readonly ModelMessage[]): ModelMessage[] =>
  messages.map((message) =>
    message.role === "assistant"
      ? { role: "assistant", content: message.content.map(plainPart) }
      : message,
  );

function plainPart(part: AssistantPart): AssistantPart {
  if (part.type !== "tool_use") return part;
  const { thoughts: _, provider_fields: __, ...rest } = part;
  return rest;
}
