import { type Asked, estimateTokens } from "./request.ts";
import type { ErrorScript } from "./script.ts";

/** How the sandbox speaks one wire protocol: server-sent events, and the body of an error. */
export interface Dialect {
  begin(asked: Asked): string;
  text(asked: Asked, text: string): string;
  end(asked: Asked, said: string, reason: EndReason): string;
  error(script: ErrorScript): unknown;
}

type EndReason = "complete" | "length" | "refused";

/** The protocol of a request, by its path. */
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
  end: (_, said, reason) =>
    named("content_block_stop", { index: 0 }) +
    named("message_delta", {
      delta: { stop_reason: anthropicReasons[reason], stop_sequence: null },
      usage: { output_tokens: estimateTokens(said.length) },
    }) +
    named("message_stop", {}),
  error: ({ type, message }) => ({ type: "error", error: { type, message } }),
};

const openaiReasons = { complete: "stop", length: "length", refused: "content_filter" };

const openai: Dialect = {
  begin: (asked) => chunk(asked, { role: "assistant", content: "" }, null),
  text: (asked, content) => chunk(asked, { content }, null),
  end: (asked, said, reason) =>
    chunk(asked, {}, openaiReasons[reason]) + openaiUsage(asked, said) + lastFrame,
  error: ({ type, message }) => ({ error: { message, type, param: null, code: type } }),
};

const chunk = (asked: Asked, delta: object, finish_reason: string | null) =>
  unnamed({
    ...chunkHead(asked),
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    usage: null,
  });

function openaiUsage(asked: Asked, said: string): string {
  const prompt_tokens = asked.inputTokens;
  const completion_tokens = estimateTokens(said.length);
  const total_tokens = prompt_tokens + completion_tokens;
  const usage = { prompt_tokens, completion_tokens, total_tokens };
  return unnamed({ ...chunkHead(asked), choices: [], usage });
}

const chunkHead = ({ model }: Asked) => ({
  id: "chatcmpl-sandbox",
  object: "chat.completion.chunk",
  created: 0,
  model,
});

const lastFrame = "data: [DONE]\n\n";
const unnamed = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
const named = (type: string, data: object) => `event: ${type}\n${unnamed({ type, ...data })}`;
