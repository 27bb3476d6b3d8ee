import type { Adapter, AdapterEvent, HttpRequest, ModelRequest } from "./adapter.ts";
import { textEvents, tokenCount, usageEvents } from "./adapter-events.ts";
import { encodeMessage } from "./anthropic-content.ts";
import { errorFromStream } from "./classify-error.ts";
import { endpointUrl, keyHeader } from "./http-request.ts";
import { parseJson, valueAt } from "./json.ts";

/** Anthropic's Messages API. */
export const anthropic: Adapter = { request, parse };

function request(request: ModelRequest): HttpRequest {
  return {
    url: endpointUrl(request.base_url, messagesPath).href,
    headers: {
      "content-type": "application/json",
      accept: "text/event-stream",
      "anthropic-version": "2023-06-01",
      "x-api-key": keyHeader(request.api_key),
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

/** Base URLs are configured with and without the version. */
const messagesPath = (base: string) =>
  base.endsWith("/v1") ? `${base}/messages` : `${base}/v1/messages`;

function parse(data: string): AdapterEvent[] {
  const event = parseJson(data);
  switch (valueAt(event, "type")) {
    case "message_start":
      return usageEvents(inputTokens(valueAt(event, "message", "usage")), undefined);
    case "content_block_start":
      return textEvents(valueAt(event, "content_block", "text"));
    case "content_block_delta":
      return contentEvents(valueAt(event, "delta"));
    case "message_delta":
      return [
        ...finalUsage(valueAt(event, "usage")),
        ...endEvents(valueAt(event, "delta", "stop_reason")),
      ];
    case "message_stop":
      return [{ type: "end", reason: "stop" }];
    case "error":
      throw errorFromStream(event);
    default:
      return [];
  }
}

function contentEvents(delta: unknown): AdapterEvent[] {
  if (valueAt(delta, "type") === "thinking_delta") return [{ type: "thinking" }];
  return textEvents(valueAt(delta, "text"));
}

const finalUsage = (usage: unknown) =>
  usageEvents(inputTokens(usage), tokenCount(valueAt(usage, "output_tokens")));

/** `input_tokens` excludes tokens read from or written to the prompt cache. */
function inputTokens(usage: unknown): number | undefined {
  const uncached = tokenCount(valueAt(usage, "input_tokens"));
  if (uncached === undefined) return undefined;
  const written = tokenCount(valueAt(usage, "cache_creation_input_tokens")) ?? 0;
  const read = tokenCount(valueAt(usage, "cache_read_input_tokens")) ?? 0;
  return uncached + written + read;
}

function endEvents(reason: unknown): AdapterEvent[] {
  if (typeof reason !== "string") return [];
  if (reason === "refusal") return [{ type: "end", reason: "refused" }];
  const isLength = reason === "max_tokens" || reason === "model_context_window_exceeded";
  return [{ type: "end", reason: isLength ? "length" : "stop" }];
}
