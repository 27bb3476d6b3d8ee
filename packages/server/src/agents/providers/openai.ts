import type { Adapter, AdapterOutput, HttpRequest, ModelRequest, Parser } from "./adapter.ts";
import { errorFromStream } from "./classify-error.ts";
import { encodeMessage, encodeTool } from "./openai-content.ts";
import { ToolDeltas } from "./openai-tool-deltas.ts";
import { OpenAiThoughts } from "./thoughts.ts";
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
  const url = endpointUrl(request.base_url, completionsPath);
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
const completionsPath = (base: string) => `${withVersion(base)}/chat/completions`;

const access = (apiKey: string) => ({ authorization: `Bearer ${keyHeader(apiKey)}` });

function models({ base_url, api_key }: Pick<ModelRequest, "base_url" | "api_key">) {
  const url = endpointUrl(base_url, (base) => `${withVersion(base)}/models`);
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
