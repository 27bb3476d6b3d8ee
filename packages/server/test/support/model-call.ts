import { expect } from "bun:test";
import { type Responder, startProvider } from "@parley/testkit/provider-server.ts";
import type { ModelOutput, ModelRequest } from "../../src/agents/providers/adapter.ts";
import { type CallOptions, callModel } from "../../src/agents/providers/call.ts";
import {
  adapters,
  createProviderSource,
  type ProtocolName,
} from "../../src/agents/providers/index.ts";
import { ProviderError } from "../../src/agents/providers/provider-errors.ts";

export const PROTOCOLS: ProtocolName[] = ["anthropic", "openai"];
export const API_KEY = "marker-key-7f3a9";

export const requestTo = (base_url: string, changes: Partial<ModelRequest> = {}): ModelRequest => ({
  system: "You are a test.",
  messages: [{ role: "user", content: [{ type: "text", text: "alice: hello" }] }],
  tools: [],
  model: "test-model",
  max_output_tokens: 100,
  api_key: API_KEY,
  base_url,
  signal: new AbortController().signal,
  ...changes,
});

/** Reads a call to its end or its error. Does not wait between attempts, but records the delays. */
export async function callOutcome(
  protocol: ProtocolName,
  request: ModelRequest,
  options: CallOptions = {},
) {
  const outputs: ModelOutput[] = [];
  const delaysMs: number[] = [];
  let attempts = 0;
  let error: unknown;
  try {
    const call = callModel(createProviderSource(adapters[protocol]), request, {
      onAttempt: (attempt) => {
        attempts = attempt;
      },
      sleep: async (ms) => void delaysMs.push(ms),
      ...options,
    });
    for await (const output of call) outputs.push(output);
  } catch (thrown) {
    error = thrown;
  }
  expectNoLeak(error);
  return { outputs, text: textOf(outputs), end: endOf(outputs), attempts, delaysMs, error };
}

/** Calls a provider that answers each attempt with the next responder. */
export async function callProvider(
  protocol: ProtocolName,
  responders: Responder[],
  options: CallOptions = {},
) {
  await using provider = await startProvider(...responders);
  const outcome = await callOutcome(protocol, requestTo(provider.url), options);
  return { ...outcome, requests: provider.requests };
}

/** Errors are logged and shown. Everything that the test provider writes has the words "raw words". */
function expectNoLeak(error: unknown) {
  const shown = Bun.inspect(error);
  expect(shown).not.toContain(API_KEY);
  expect(shown).not.toContain("raw words");
}

export const textOf = (outputs: ModelOutput[]) =>
  outputs.map((output) => (output.type === "text" ? output.text : "")).join("");

export const endOf = (outputs: ModelOutput[]) => {
  const last = outputs.at(-1);
  return last?.type === "end" ? last.reason : undefined;
};

/** The final counts: a later value replaces an earlier one. */
export const usageOf = (outputs: ModelOutput[]) =>
  Object.assign({}, ...outputs.filter((output) => output.type === "usage"));

export const errorCode = (error: unknown) => (error instanceof ProviderError ? error.code : error);
