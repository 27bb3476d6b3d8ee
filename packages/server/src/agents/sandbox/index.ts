import type { ModelFetch } from "../providers/attempt.ts";
import { sleep } from "../providers/sleep.ts";
import { type Dialect, dialectOf } from "./dialects.ts";
import { modelsResponse } from "./models.ts";
import { readRequest, type SandboxRequest } from "./request.ts";
import { type AnswerScript, type ErrorScript, scriptFor } from "./script.ts";

/**
 * The built-in model. It replaces `fetch` in a call, so its answers take the same path as those of
 * a provider. It has no access to the network.
 */
export const sandboxFetch: ModelFetch = makeSandboxFetch();

/** `speed` divides the delay between words. `Infinity` removes it. */
export function makeSandboxFetch({ speed = 1 } = {}): ModelFetch {
  return async (url, init) => {
    init.signal?.throwIfAborted();
    if (init.method === "GET") return modelsResponse(url);
    const dialect = dialectOf(url);
    if (!dialect || typeof init.body !== "string") return new Response(null, { status: 404 });
    const request = await readRequest(init.body);
    const script = scriptFor(request);
    if (script.kind === "error") return errorResponse(dialect, script);
    const events = answerEvents(dialect, request, script, makeDelay(speed, init.signal));
    const headers = { "content-type": "text/event-stream; charset=utf-8" };
    return new Response(streamOf(events), { headers });
  };
}

type Delay = (ms: number) => Promise<void>;

function makeDelay(speed: number, signal: AbortSignal | null | undefined): Delay {
  const abortSignal = signal ?? new AbortController().signal;
  return async (ms) => {
    abortSignal.throwIfAborted();
    if (ms / speed > 0) await sleep(ms / speed, abortSignal);
  };
}

function errorResponse(dialect: Dialect, script: ErrorScript): Response {
  const headers = { "retry-after": String(script.retryAfterSeconds) };
  return Response.json(dialect.error(script), {
    status: script.status,
    ...(script.retryAfterSeconds === undefined ? {} : { headers }),
  });
}

async function* answerEvents(
  dialect: Dialect,
  request: SandboxRequest,
  script: AnswerScript,
  delay: Delay,
) {
  const words = script.text.match(/\s*\S+/g) ?? [];
  const sent = words.slice(0, request.maxTokens);
  await delay(0);
  yield dialect.begin(request);
  for (const [index, word] of sent.entries()) {
    await delay(index === 0 ? 0 : script.wordIntervalMs);
    yield dialect.text(request, word);
  }
  if (script.end === "cut") throw new Error("the script breaks the connection");
  const answer = sent.join("");
  if (script.calls.length > 0) {
    yield dialect.calls(request, script.calls);
    yield dialect.end(request, answer + JSON.stringify(script.calls), "tool_use");
    return;
  }
  yield dialect.end(request, answer, sent.length < words.length ? "length" : script.end);
}

/** Encodes server-sent events as bytes, each one only when it is read. */
function streamOf(events: AsyncGenerator<string, void>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const next = await events.next();
      if (next.done) controller.close();
      else controller.enqueue(encoder.encode(next.value));
    },
    async cancel() {
      await events.return();
    },
  });
}
