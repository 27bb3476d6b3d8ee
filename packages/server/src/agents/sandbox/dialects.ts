import { estimateTokens, type SandboxRequest } from "./request.ts";
import type { ErrorScript } from "./script.ts";

/** How the sandbox answers in one wire protocol. */
export interface Dialect {
  /** The server-sent events before the first text. */
  begin(request: SandboxRequest): string;
  text(request: SandboxRequest, text: string): string;
  /** The events after the last text. `answer` is the whole text. */
  end(request: SandboxRequest, answer: string, reason: EndReason): string;
  /** The body of an error response. */
  error(script: ErrorScript): unknown;
}

type EndReason = "complete" | "length" | "refused";

/** The dialect for the path of a request. */
export function dialectOf(url: string): Dialect | undefined {
  const { pathname } = new URL(url);
  if (pathname.endsWith("/v1/messages")) return anthropic;
  if (pathname.endsWith("/chat/completions")) return openai;
  return undefined;
}

const anthropicReasons = { complete: "end_turn", length: "max_tokens", refused: "refusal" };

const anthropic: Dialect = {
  begin: ({ model, inputTokens }) =>
    named("message_start", {
      message: {
        id: "msg_sandbox",
        type: "message",
        role: "assistant",
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: inputTokens, output_tokens: 1 },
      },
    }) + named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  text: (_, text) =>
    named("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  end: (_, answer, reason) =>
    named("content_block_stop", { index: 0 }) +
    named("message_delta", {
      delta: { stop_reason: anthropicReasons[reason], stop_sequence: null },
      usage: { output_tokens: estimateTokens(answer.length) },
    }) +
    named("message_stop", {}),
  error: ({ type, message }) => ({ type: "error", error: { type, message } }),
};

const openaiReasons = { complete: "stop", length: "length", refused: "content_filter" };

const openai: Dialect = {
  begin: (request) => chunk(request, { role: "assistant", content: "" }, null),
  text: (request, content) => chunk(request, { content }, null),
  end: (request, answer, reason) =>
    chunk(request, {}, openaiReasons[reason]) + openaiUsage(request, answer) + lastFrame,
  error: ({ type, message }) => ({ error: { message, type, param: null, code: type } }),
};

const chunk = (request: SandboxRequest, delta: object, finish_reason: string | null) =>
  unnamed({
    ...chunkHead(request),
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    usage: null,
  });

function openaiUsage(request: SandboxRequest, answer: string): string {
  const prompt_tokens = request.inputTokens;
  const completion_tokens = estimateTokens(answer.length);
  const total_tokens = prompt_tokens + completion_tokens;
  const usage = { prompt_tokens, completion_tokens, total_tokens };
  return unnamed({ ...chunkHead(request), choices: [], usage });
}

const chunkHead = ({ model }: SandboxRequest) => ({
  id: "chatcmpl-sandbox",
  object: "chat.completion.chunk",
  created: 0,
  model,
});

const lastFrame = "data: [DONE]\n\n";
const unnamed = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
const named = (type: string, data: object) => `event: ${type}\n${unnamed({ type, ...data })}`;
