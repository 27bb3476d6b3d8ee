import { streamError } from "./classify.ts";
import { encodeMessage } from "./openai-content.ts";
import type { Adapter, ModelRequest, WireEvent, WireRequest } from "./provider.ts";
import {
  dig,
  endpoint,
  headerKey,
  parseJson,
  textEvents,
  tokenCount,
  usageEvents,
} from "./wire.ts";

/** OpenAI's Chat Completions API, spoken by vLLM, Ollama, llama.cpp and most gateways too. */
export const openai: Adapter = { request, parse };

function request(request: ModelRequest): WireRequest {
  const url = endpoint(request.base_url, completionsPath);
  const system = request.system === "" ? [] : [{ role: "system", content: request.system }];
  return {
    url: url.href,
    headers: {
      "content-type": "application/json",
      accept: "text/event-stream",
      authorization: `Bearer ${headerKey(request.api_key)}`,
    },
    body: JSON.stringify({
      model: request.model,
      [lengthField(url.hostname)]: request.max_output_tokens,
      stream: true,
      stream_options: { include_usage: true },
      messages: [...system, ...request.messages.flatMap(encodeMessage)],
    }),
  };
}

/** Bases usually end in a version (`/v1`, `/v1beta/openai`); a bare host means the usual one. */
const completionsPath = (base: string) => `${base === "" ? "/v1" : base}/chat/completions`;

/** OpenAI's newer models reject `max_tokens`; servers modelled on the older API know only that. */
const lengthField = (host: string) =>
  /(^|\.)openai\.(com|azure\.com)$/.test(host) ? "max_completion_tokens" : "max_tokens";

function parse(data: string): WireEvent[] {
  if (data === "[DONE]") return [{ type: "end", reason: "stop" }];
  const chunk = parseJson(data);
  if (reportsError(chunk)) throw streamError(chunk);
  const choice = dig(chunk, "choices", 0);
  return [
    ...contentEvents(dig(choice, "delta")),
    ...endEvents(dig(choice, "finish_reason")),
    ...usageEvents(
      tokenCount(dig(chunk, "usage", "prompt_tokens")),
      tokenCount(dig(chunk, "usage", "completion_tokens")),
    ),
  ];
}

/** Besides `{ "error": … }`, vLLM's way of saying so. */
const reportsError = (chunk: unknown) =>
  (dig(chunk, "error") ?? null) !== null || dig(chunk, "object") === "error";

function contentEvents(delta: unknown): WireEvent[] {
  if (isText(dig(delta, "refusal"))) return [{ type: "end", reason: "refused" }];
  if (isText(dig(delta, "reasoning_content")) || isText(dig(delta, "reasoning")))
    return [{ type: "thinking" }, ...textEvents(dig(delta, "content"))];
  return textEvents(dig(delta, "content"));
}

const isText = (value: unknown) => typeof value === "string" && value !== "";

function endEvents(reason: unknown): WireEvent[] {
  // Some gateways write an empty one beside every piece.
  if (!isText(reason)) return [];
  if (reason === "error") throw streamError(undefined);
  if (reason === "content_filter") return [{ type: "end", reason: "refused" }];
  return [{ type: "end", reason: reason === "length" ? "length" : "stop" }];
}
