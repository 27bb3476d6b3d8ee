import type {
  Adapter,
  AdapterOutput,
  HttpRequest,
  ModelRequest,
  Parser,
  SentToolUse,
} from "./adapter.ts";
import { errorFromStream } from "./classify-error.ts";
import { encodeMessage, encodeTool } from "./openai-content.ts";
import { OpenAiThoughts } from "./thoughts.ts";
import { type OpenCall, ToolCalls, toToolUse } from "./tool-calls.ts";
import {
  endpointUrl,
  keyHeader,
  parseJson,
  streamHeaders,
  textOutputs,
  thinkingOutput,
  usageOutputs,
  valueAt,
} from "./wire.ts";

/** OpenAI's Chat Completions API, which vLLM, Ollama, llama.cpp and most gateways offer too. */
export const openai: Adapter = { request, models, parser };

function request(request: ModelRequest): HttpRequest {
  const url = endpointUrl(request.base_url, withVersion, "/chat/completions");
  const system = request.system === "" ? [] : [{ role: "system", content: request.system }];
  return {
    url: url.href,
    headers: { ...streamHeaders, ...access(request.api_key) },
    body: JSON.stringify({
      model: request.model,
      [lengthField(url.hostname)]: request.max_output_tokens,
      stream: true,
      stream_options: { include_usage: true },
      messages: [...system, ...request.messages.flatMap(encodeMessage)],
      ...(request.tools.length > 0 && { tools: request.tools.map(encodeTool) }),
    }),
  };
}

/** Base URLs usually end in a version (`/v1`, `/v1beta/openai`). A bare host gets `/v1`. */
const withVersion = (base: string) => (base === "" ? "/v1" : base);

const access = (apiKey: string) => ({ authorization: `Bearer ${keyHeader(apiKey)}` });

function models({ base_url, api_key }: Pick<ModelRequest, "base_url" | "api_key">) {
  const url = endpointUrl(base_url, withVersion, "/models");
  return { url: url.href, headers: { accept: "application/json", ...access(api_key) } };
}

/** OpenAI's newer models reject `max_tokens`; compatible servers may know no other name. */
const lengthField = (host: string) =>
  /(^|\.)openai\.(com|azure\.com)$/.test(host) ? "max_completion_tokens" : "max_tokens";

function parser(): Parser {
  const calls = new ToolDeltas();
  const thoughts = new OpenAiThoughts();
  const takeCalls = () => thoughts.before(calls.takeAll());
  return (data) => {
    if (data === "[DONE]") return [...takeCalls(), { type: "end", reason: "stop" }];
    const chunk = parseJson(data);
    if (isError(chunk)) throw errorFromStream(chunk);
    const choice = valueAt(chunk, "choices", 0);
    const delta = valueAt(choice, "delta");
    const ends = endOutputs(valueAt(choice, "finish_reason"));
    thoughts.add(delta);
    return [
      ...contentOutputs(delta),
      ...calls.add(valueAt(delta, "tool_calls")),
      ...(ends.length > 0 ? takeCalls() : []),
      ...ends,
      ...usageOutputs(
        valueAt(chunk, "usage", "prompt_tokens"),
        valueAt(chunk, "usage", "completion_tokens"),
      ),
    ];
  };
}

/** vLLM sends `{ "object": "error" }` instead of `{ "error": … }`. */
const isError = (chunk: unknown) =>
  (valueAt(chunk, "error") ?? null) !== null || valueAt(chunk, "object") === "error";

function contentOutputs(delta: unknown): AdapterOutput[] {
  if (isText(valueAt(delta, "refusal"))) return [{ type: "end", reason: "refused" }];
  const text = textOutputs(valueAt(delta, "content"));
  // Servers that send both mean the same by them.
  const thoughts = [valueAt(delta, "reasoning_content"), valueAt(delta, "reasoning")].find(isText);
  return thoughts === undefined ? text : [thinkingOutput(thoughts), ...text];
}

function endOutputs(reason: unknown): AdapterOutput[] {
  // Some gateways send an empty `finish_reason` with every chunk.
  if (!isText(reason)) return [];
  if (reason === "error") throw errorFromStream(undefined);
  if (reason === "content_filter") return [{ type: "end", reason: "refused" }];
  return [{ type: "end", reason: reason === "length" ? "length" : "stop" }];
}

const isText = (value: unknown) => typeof value === "string" && value !== "";

/** A call and what the server identifies its fragments by. */
type IndexedCall = OpenCall & { readonly index: unknown; readonly sentId: unknown };

/**
 * Assembles the tool calls of one answer. OpenAI identifies the fragments of a call by its index and
 * sends its id and name in the first one. Compatible servers omit the index, give all calls the same
 * one, omit the id, send another with each fragment or repeat the name. Many send a whole call at once.
 */
class ToolDeltas {
  readonly #calls = new ToolCalls();
  #open: IndexedCall[] = [];

  add(deltas: unknown): AdapterOutput[] {
    if (!Array.isArray(deltas)) return [];
    return deltas.map((delta) => {
      const call = this.#callOf(delta) ?? this.#start(delta);
      const before = call.arguments.length;
      this.#calls.append(call, valueAt(delta, "function", "arguments"));
      this.#calls.keep(call, providerFields(delta));
      return thinkingOutput(call.arguments.slice(before));
    });
  }

  /** The calls in the order of their first fragments. Only the end tells that they are complete. */
  takeAll(): SentToolUse[] {
    const calls = this.#open;
    this.#open = [];
    return calls.map(toToolUse);
  }

  #start(delta: unknown): OpenCall {
    const sentId = valueAt(delta, "id");
    const call = this.#calls.start(sentId, valueAt(delta, "function", "name"));
    const indexed = Object.assign(call, { index: valueAt(delta, "index"), sentId });
    this.#open.push(indexed);
    return indexed;
  }

  /** The call that a fragment belongs to. Undefined if it begins another one. */
  #callOf(delta: unknown): OpenCall | undefined {
    const index = valueAt(delta, "index");
    const id = valueAt(delta, "id");
    const hasIndex = typeof index === "number";
    const last = this.#open.findLast((open) => !hasIndex || open.index === index);
    const isNamed = Boolean(valueAt(delta, "function", "name"));
    const isOther = id ? id !== last?.sentId : !hasIndex;
    return isNamed && isOther ? undefined : last;
  }
}

/** Gemini signs its calls in `extra_content`, and refuses them without the signature. */
function providerFields(delta: unknown): Record<string, unknown> {
  if (typeof delta !== "object" || delta === null || Array.isArray(delta)) return {};
  const known = new Set(["index", "id", "type", "function"]);
  return Object.fromEntries(Object.entries(delta).filter(([name]) => !known.has(name)));
}
