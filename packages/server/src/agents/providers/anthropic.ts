import { encodeMessage } from "./anthropic-content.ts";
import { streamError } from "./classify.ts";
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

/** Anthropic's Messages API. */
export const anthropic: Adapter = { request, parse };

function request(request: ModelRequest): WireRequest {
  return {
    url: endpoint(request.base_url, messagesPath).href,
    headers: {
      "content-type": "application/json",
      accept: "text/event-stream",
      "anthropic-version": "2023-06-01",
      "x-api-key": headerKey(request.api_key),
    },
    body: JSON.stringify({
      model: request.model,
      max_tokens: request.max_output_tokens,
      stream: true,
      ...(request.system === "" ? {} : { system: request.system }),
      messages: request.messages.map(encodeMessage),
    }),
  };
}

/** The base is written with and without its version. */
const messagesPath = (base: string) =>
  base.endsWith("/v1") ? `${base}/messages` : `${base}/v1/messages`;

function parse(data: string): WireEvent[] {
  const event = parseJson(data);
  switch (dig(event, "type")) {
    case "message_start":
      return usageEvents(inputTokens(dig(event, "message", "usage")), undefined);
    case "content_block_start":
      return textEvents(dig(event, "content_block", "text"));
    case "content_block_delta":
      return contentEvents(dig(event, "delta"));
    case "message_delta":
      return [...finalUsage(dig(event, "usage")), ...endEvents(dig(event, "delta", "stop_reason"))];
    case "message_stop":
      return [{ type: "end", reason: "stop" }];
    case "error":
      throw streamError(event);
    default:
      return [];
  }
}

function contentEvents(delta: unknown): WireEvent[] {
  if (dig(delta, "type") === "thinking_delta") return [{ type: "thinking" }];
  return textEvents(dig(delta, "text"));
}

const finalUsage = (usage: unknown) =>
  usageEvents(inputTokens(usage), tokenCount(dig(usage, "output_tokens")));

/** `input_tokens` leaves out what was read from or written to the prompt cache. */
function inputTokens(usage: unknown): number | undefined {
  const uncached = tokenCount(dig(usage, "input_tokens"));
  if (uncached === undefined) return undefined;
  const written = tokenCount(dig(usage, "cache_creation_input_tokens")) ?? 0;
  const read = tokenCount(dig(usage, "cache_read_input_tokens")) ?? 0;
  return uncached + written + read;
}

function endEvents(reason: unknown): WireEvent[] {
  if (typeof reason !== "string") return [];
  if (reason === "refusal") return [{ type: "end", reason: "refused" }];
  const cutOff = reason === "max_tokens" || reason === "model_context_window_exceeded";
  return [{ type: "end", reason: cutOff ? "length" : "stop" }];
}
