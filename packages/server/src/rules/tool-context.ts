import type { Message } from "@parley/protocol";
import type {
  AssistantPart,
  ModelMessage,
  ProviderFields,
  ToolResultPart,
  UserPart,
} from "./model-content.ts";
import { quoteName } from "./quoting.ts";
import { estimateTokens } from "./token-estimate.ts";
import type { DetailedCall } from "./tool-calls.ts";
import { functionName } from "./tool-names.ts";

/** A call as a model reads it in the turn that goes on after it. */
export interface ContextCall
  extends Pick<
    DetailedCall,
    "server" | "tool" | "arguments" | "status" | "result" | "error" | "note"
  > {
  /** The round of the turn that asked for it. */
  readonly round: number;
  /** The length in bytes of what the agent had written before. */
  readonly text_bytes: number;
  readonly model_id: string;
  /** What only the provider of the model understands of it; null if there is nothing. */
  readonly provider_fields: ProviderFields | null;
  /** Null for built-in tools. */
  readonly server_id: string | null;
}

/** The messages that a turn continues, newest first: one for each time that it waited. */
export function continuedMessages(messages: readonly Message[], continues: string | null) {
  const byId = new Map(messages.map((message) => [message.id, message]));
  const ids = new Set<string>();
  for (let id = continues ?? undefined; id !== undefined && !ids.has(id); ) {
    ids.add(id);
    id = byId.get(id)?.turn?.continues;
  }
  return ids;
}

/** What the agent wrote of a message: not our texts, such as an error or the card that asks for an approval. */
export function ownText({ content, tool_calls, turn, action }: Message): string {
  if (action !== null) return "";
  if (turn?.status === "failed" && turn.error?.message === content) return "";
  if (!asksApproval({ content, tool_calls })) return content;
  // It begins a line, which no argument that it quotes does.
  const card = `\n${content}`.lastIndexOf("\n<card ");
  return card < 0 ? content : content.slice(0, card).trimEnd();
}

const asksApproval = ({ content, tool_calls }: Pick<Message, "content" | "tool_calls">) =>
  tool_calls.some(({ id }) => content.includes(`call:${id}:`));

/** A message that is continued, as the model produced it: texts, calls and their results. */
export function callMessages(message: Message, calls: readonly ContextCall[]): ModelMessage[] {
  const bytes = Buffer.from(ownText(message));
  const messages: ModelMessage[] = [];
  let written = 0;
  for (const [, round] of Map.groupBy(calls, (call) => call.round)) {
    const upTo = Math.max(written, round[0]?.text_bytes ?? 0);
    const text = bytes.toString("utf8", written, upTo).trim();
    written = upTo;
    messages.push({ role: "assistant", content: [...textParts(text), ...round.map(toolUse)] });
    messages.push({ role: "user", content: round.map(toolResult) });
  }
  // The card ends the message. Before it, a code block of the model may have been closed.
  if (asksApproval(message)) return messages;
  const rest = bytes.toString("utf8", written).trim();
  if (rest !== "") messages.push({ role: "assistant", content: textParts(rest) });
  return messages;
}

const textParts = (text: string): AssistantPart[] => (text === "" ? [] : [{ type: "text", text }]);

const toolUse = (call: ContextCall): AssistantPart => ({
  type: "tool_use",
  id: call.model_id,
  name: functionName(call),
  input: call.arguments,
  ...(call.provider_fields && { provider_fields: call.provider_fields }),
});

const toolResult = (call: ContextCall): ToolResultPart => ({
  type: "tool_result",
  tool_use_id: call.model_id,
  content: [{ type: "text", text: resultText(call) }],
  is_error: call.status !== "done",
});

/** What the model is told about a call. Notes are the owner's words, so they are quoted. */
export function resultText({ status, result, error, note }: ContextCall): string {
  const said = note === null ? "" : ` The owner noted: ${quoteName(note)}`;
  switch (status) {
    case "done":
      return `${result || "(The tool returned nothing.)"}${said}`;
    case "rejected":
      return `The owner rejected this call. It was not made.${said}`;
    case "expired":
      return "Nobody approved this call in time. It was not made.";
    case "failed":
      return error === "interrupted"
        ? "The call was interrupted. It is not known whether it was carried out: do not assume either, and do not repeat it unasked."
        : `The call failed: ${error ?? "unknown error"}`;
    default:
      return "The call was not made.";
  }
}

/** Tells the model in later turns which tools it had used. Results are not repeated. */
export function callSummary({ tool_calls }: Message): string {
  const calls = tool_calls.map(
    ({ server, tool, status }) => `${quoteName(`${server}/${tool}`)} ${status}`,
  );
  return `(tools that you used for the message above: ${calls.join(", ")})`;
}

/** Estimated tokens of texts, calls and results. */
export const partTokens = (messages: readonly ModelMessage[]): number =>
  messages
    .flatMap<UserPart | AssistantPart>(({ content }) => [...content])
    .reduce((sum, part) => sum + tokensOf(part), 0);

function tokensOf(part: UserPart | AssistantPart): number {
  switch (part.type) {
    case "text":
      return estimateTokens(part.text);
    case "tool_use":
      return [part.name, JSON.stringify(part.input), JSON.stringify(part.thoughts ?? "")]
        .map(estimateTokens)
        .reduce((sum, tokens) => sum + tokens);
    case "tool_result":
      return part.content.reduce((sum, each) => sum + tokensOf(each), estimateTokens(""));
    default:
      return 0;
  }
}
