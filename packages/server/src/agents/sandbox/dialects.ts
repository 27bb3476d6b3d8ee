import { estimateTokens, type SandboxRequest } from "./request.ts";
import type { SandboxCall } from "./request-tools.ts";
import type { ErrorScript } from "./script.ts";

/** How the sandbox answers in one wire protocol. */
export interface Dialect {
  /** The server-sent events before the first text. */
  begin(request: SandboxRequest): string;
  text(request: SandboxRequest, text: string): string;
  /** Tool calls, after the last text. */
  calls(request: SandboxRequest, calls: readonly SandboxCall[]): string;
  /** The events after the last text or call. `answer` is all that was sent. */
  end(request: SandboxRequest, answer: string, reason: EndReason): string;
  /** The body of an error response. */
  error(script: ErrorScript): unknown;
}

type EndReason = "complete" | "length" | "refused" | "tool_use";

/** The dialect for the path of a request. */
export function dialectOf(url: string): Dialect | undefined {
  const { pathname } = new URL(url);
  if (pathname.endsWith("/v1/messages")) return anthropic;
  if (pathname.endsWith("/chat/completions")) return openai;
  return undefined;
}

const callId = () => `toolu_sandbox_${crypto.randomUUID()}`;

const anthropicReasons = {
  complete: "end_turn",
  length: "max_tokens",
  refused: "refusal",
  tool_use: "tool_use",
};

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
  calls: (_, calls) => calls.map((call, index) => toolBlock(call, index + 1)).join(""),
  end: (_, answer, reason) =>
    named("content_block_stop", { index: 0 }) +
    named("message_delta", {
      delta: { stop_reason: anthropicReasons[reason], stop_sequence: null },
      usage: { output_tokens: estimateTokens(answer.length) },
    }) +
    named("message_stop", {}),
  error: ({ type, message }) => ({ type: "error", error: { type, message } }),
};

function toolBlock({ name, input }: SandboxCall, index: number): string {
  const content_block = { type: "tool_use", id: callId(), name, input: {} };
  const delta = { type: "input_json_delta", partial_json: JSON.stringify(input) };
  return (
    named("content_block_start", { index, content_block }) +
    named("content_block_delta", { index, delta }) +
    named("content_block_stop", { index })
  );
}

const openaiReasons = {
  complete: "stop",
  length: "length",
  refused: "content_filter",
  tool_use: "tool_calls",
};

const openai: Dialect = {
  begin: (request) => chunk(request, { role: "assistant", content: "" }, null),
  text: (request, content) => chunk(request, { content }, null),
  calls: (request, calls) =>
    calls
      .map(({ name, input }, index) => {
        const called = { name, arguments: JSON.stringify(input) };
        const delta = { index, id: callId(), type: "function", function: called };
        return chunk(request, { tool_calls: [delta] }, null);
      })
      .join(""),
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
