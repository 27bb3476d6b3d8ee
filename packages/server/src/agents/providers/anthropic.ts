import type { Adapter, AdapterOutput, HttpRequest, ModelRequest, Parser } from "./adapter.ts";
import { encodeMessage, encodeTool } from "./anthropic-content.ts";
import { errorFromStream } from "./classify-error.ts";
import { AnthropicThoughts } from "./thoughts.ts";
import { type OpenCall, ToolCalls, toToolUse } from "./tool-calls.ts";
import {
  endpointUrl,
  keyHeader,
  parseJson,
  streamHeaders,
  textOutputs,
  thinkingOutput,
  tokenCount,
  usageOutputs,
  valueAt,
} from "./wire.ts";

/** Anthropic's Messages API. */
export const anthropic: Adapter = { request, models, parser };

function request(request: ModelRequest): HttpRequest {
  return {
    url: endpointUrl(request.base_url, withVersion, "/messages").href,
    headers: { ...streamHeaders, ...access(request.api_key) },
    body: JSON.stringify({
      model: request.model,
      max_tokens: request.max_output_tokens,
      stream: true,
      ...(request.system === "" ? {} : { system: request.system }),
      messages: request.messages.map(encodeMessage),
      ...(request.tools.length > 0 && { tools: request.tools.map(encodeTool) }),
    }),
  };
}

const access = (apiKey: string) => ({
  "anthropic-version": "2023-06-01",
  "x-api-key": keyHeader(apiKey),
});

/** Base URLs are configured with and without the version. */
const withVersion = (base: string) => (base.endsWith("/v1") ? base : `${base}/v1`);

function models({ base_url, api_key }: Pick<ModelRequest, "base_url" | "api_key">) {
  const url = endpointUrl(base_url, withVersion, "/models");
  // Pages have 20 models by default, and this many at most.
  url.searchParams.set("limit", "1000");
  return { url: url.href, headers: { accept: "application/json", ...access(api_key) } };
}

function parser(): Parser {
  const blocks = new ContentBlocks();
  return (data) => {
    const event = parseJson(data);
    const index = valueAt(event, "index");
    const usage = valueAt(event, "usage");
    switch (valueAt(event, "type")) {
      case "message_start":
        return usageOutputs(inputTokens(valueAt(event, "message", "usage")), undefined);
      case "content_block_start":
        return blocks.start(index, valueAt(event, "content_block"));
      case "content_block_delta":
        return blocks.add(index, valueAt(event, "delta"));
      case "content_block_stop":
        return blocks.stop(index);
      case "message_delta":
        return [
          ...usageOutputs(inputTokens(usage), valueAt(usage, "output_tokens")),
          ...blocks.stopAll(),
          ...endOutputs(valueAt(event, "delta", "stop_reason")),
        ];
      case "message_stop":
        return [{ type: "end", reason: "stop" }];
      case "error":
        throw errorFromStream(event);
      default:
        return [];
    }
  };
}

/** Reads the content blocks of an answer. Those that are tool calls arrive in fragments. */
class ContentBlocks {
  readonly #calls = new ToolCalls();
  readonly #open = new Map<unknown, OpenCall>();
  readonly #thoughts = new AnthropicThoughts();
  #hasCalls = false;

  start(index: unknown, block: unknown): AdapterOutput[] {
    this.#thoughts.start(index, block);
    if (valueAt(block, "type") !== "tool_use") return textOutputs(valueAt(block, "text"));
    const call = this.#calls.start(valueAt(block, "id"), valueAt(block, "name"));
    this.#open.set(index, call);
    // The input is empty here, and follows in deltas. Some servers send it at once instead.
    const input = valueAt(block, "input");
    if (Object.keys(input ?? {}).length > 0) this.#calls.append(call, input);
    return [thinkingOutput(call.name + call.arguments)];
  }

  add(index: unknown, delta: unknown): AdapterOutput[] {
    this.#thoughts.add(index, delta);
    switch (valueAt(delta, "type")) {
      case "thinking_delta":
      case "signature_delta":
        return [thinkingOutput(valueAt(delta, "thinking"))];
      case "input_json_delta": {
        const call = this.#open.get(index);
        if (call) this.#calls.append(call, valueAt(delta, "partial_json"));
        return [thinkingOutput(valueAt(delta, "partial_json"))];
      }
      default:
        return textOutputs(valueAt(delta, "text"));
    }
  }

  stop(index: unknown): AdapterOutput[] {
    const call = this.#open.get(index);
    this.#open.delete(index);
    if (!call) return [];
    const use = toToolUse(call);
    const isFirst = !this.#hasCalls;
    this.#hasCalls = true;
    return isFirst ? this.#thoughts.before([use]) : [use];
  }

  /** For servers that do not report the end of each block. */
  stopAll(): AdapterOutput[] {
    return [...this.#open.keys()].flatMap((index) => this.stop(index));
  }
}

/** `input_tokens` excludes tokens read from or written to the prompt cache. */
function inputTokens(usage: unknown): number | undefined {
  const uncached = tokenCount(valueAt(usage, "input_tokens"));
  if (uncached === undefined) return undefined;
  const written = tokenCount(valueAt(usage, "cache_creation_input_tokens")) ?? 0;
  const read = tokenCount(valueAt(usage, "cache_read_input_tokens")) ?? 0;
  return uncached + written + read;
}

function endOutputs(reason: unknown): AdapterOutput[] {
  if (typeof reason !== "string") return [];
  if (reason === "refusal") return [{ type: "end", reason: "refused" }];
  const isLength = reason === "max_tokens" || reason === "model_context_window_exceeded";
  return [{ type: "end", reason: isLength ? "length" : "stop" }];
}
