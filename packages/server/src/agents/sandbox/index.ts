import type { AdapterOutput, ModelOutput, ModelRequest } from "../providers/adapter.ts";
import { Answer } from "../providers/answer.ts";
import { sleep } from "../providers/call.ts";
import type { ModelSource } from "../providers/index.ts";
import { providerErrors } from "../providers/provider-errors.ts";
import { toToolUse } from "../providers/tool-calls.ts";
import { estimateTokens, readRequest } from "./request.ts";
import { type AnswerScript, scriptFor } from "./script.ts";

/** The built-in model. Its answers take the same path as those of a provider, without a network. */
export const sandbox: ModelSource = createSandbox();

/** `speed` divides the delay between words. `Infinity` removes it. */
export function createSandbox({ speed = 1 } = {}): ModelSource {
  return {
    // It answers to every other name too.
    models: async () => [{ id: "sandbox", display_name: "Sandbox" }],
    prepare: (request) => () => answerTo(request, speed),
  };
}

async function* answerTo(request: ModelRequest, speed: number): AsyncGenerator<ModelOutput> {
  request.signal.throwIfAborted();
  const read = await readRequest(request);
  const script = scriptFor(read);
  if ("fail" in script) throw script.fail();
  const answer = new Answer(request.max_output_tokens);
  answer.add({ type: "usage", input_tokens: read.inputTokens });
  for await (const output of outputsOf(script, request, speed)) {
    answer.add(output);
    yield* answer.takeOutputs();
  }
  yield* answer.finish();
}

async function* outputsOf(
  { text, wordIntervalMs, calls, end }: AnswerScript,
  { signal, max_output_tokens }: ModelRequest,
  speed: number,
): AsyncGenerator<AdapterOutput> {
  const words = text.match(/\s*\S+/g) ?? [];
  const sent = words.slice(0, max_output_tokens);
  for (const [index, word] of sent.entries()) {
    signal.throwIfAborted();
    const waitMs = index === 0 ? 0 : wordIntervalMs / speed;
    if (waitMs > 0) await sleep(waitMs, signal);
    yield { type: "text", text: word };
  }
  if (end === "cut")
    throw providerErrors.unreachable(new Error("the script breaks the connection"));
  for (const { name, input } of calls) {
    const id = `toolu_sandbox_${crypto.randomUUID()}`;
    yield toToolUse({ id, name, arguments: JSON.stringify(input) });
  }
  const written = sent.join("") + (calls.length === 0 ? "" : JSON.stringify(calls));
  yield { type: "usage", output_tokens: estimateTokens(written.length) };
  yield { type: "end", reason: sent.length < words.length ? "length" : end };
}
