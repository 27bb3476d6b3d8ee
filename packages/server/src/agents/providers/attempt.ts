import { readStart } from "../../security/guarded-fetch.ts";
import type { Adapter, AdapterOutput, HttpRequest, ModelOutput, ModelRequest } from "./adapter.ts";
import { Answer } from "./answer.ts";
import { AttemptDeadline } from "./attempt-deadline.ts";
import { errorFromResponse } from "./classify-error.ts";
import { providerErrors } from "./provider-errors.ts";
import { type Backpressure, createSseReader } from "./sse-reader.ts";

/** The part of `fetch` that a call needs. */
export type ModelFetch = (url: string, init: BunFetchRequestInit) => Promise<Response>;

/** How long the provider may take. Time that the reader takes does not count. */
export const DEFAULT_TIMEOUTS = {
  /** From sending the request to the response headers. */
  headersMs: 60_000,
  /** From the headers to the first output: models think for minutes, and long prompts take long to read. */
  firstTokenMs: 180_000,
  /** From one text, thinking or piece of a call to the next. */
  idleMs: 60_000,
  /** From the reported end to the end of the stream. Usage may come in between. */
  tailMs: 2_000,
  errorBodyMs: 5_000,
};
export type Timeouts = typeof DEFAULT_TIMEOUTS;

export interface AttemptOptions {
  fetch: ModelFetch;
  timeouts: Timeouts;
  /** Text that arrives while it is pending is yielded in one piece. */
  backpressure?: Backpressure | undefined;
}

const MAX_ERROR_BODY_BYTES = 16 << 10;

/** Includes the JSON around each token, and thinking. */
const maxStreamBytes = (maxOutputTokens: number) => maxOutputTokens * 2048 + (1 << 20);

/** Makes one attempt. Yields nothing before the first output of the model, or an end. */
export async function* streamAttempt(
  adapter: Adapter,
  httpRequest: HttpRequest,
  { signal, max_output_tokens }: ModelRequest,
  { fetch, timeouts, backpressure }: AttemptOptions,
): AsyncGenerator<ModelOutput> {
  using deadline = new AttemptDeadline(signal);
  const body = await openStream(httpRequest, deadline, fetch, timeouts);
  const reader = createSseReader(body, deadline, {
    timeoutMs: timeouts.firstTokenMs,
    maxBytes: maxStreamBytes(max_output_tokens),
    backpressure,
  });
  const parse = adapter.parser();
  const answer = new Answer(max_output_tokens);
  try {
    while (!answer.isTooLong) {
      const batch = await reader.next();
      if (!batch) break;
      try {
        for (const data of batch) {
          const outputs = parse(data);
          for (const output of outputs) answer.add(output);
          const nextMs = nextTimeoutMs(outputs, answer, timeouts);
          if (nextMs !== undefined) reader.allow(nextMs);
          if (answer.isTooLong) break;
        }
      } finally {
        yield* answer.takeOutputs();
      }
    }
  } catch (error) {
    // An error after the reported end does not matter: the answer is complete.
    if (!answer.hasEnded || signal.aborted) throw error;
  }
  yield* answer.finish();
}

/** The timeout after these outputs, or undefined if they do not extend it. */
function nextTimeoutMs(outputs: readonly AdapterOutput[], answer: Answer, timeouts: Timeouts) {
  if (answer.hasEnded) return outputs.length > 0 ? timeouts.tailMs : undefined;
  const isWorking = outputs.some(({ type }) => type !== "usage");
  return isWorking ? timeouts.idleMs : undefined;
}

async function openStream(
  { url, headers, body }: HttpRequest,
  deadline: AttemptDeadline,
  fetch: ModelFetch,
  timeouts: Timeouts,
): Promise<ReadableStream<Uint8Array>> {
  const { signal } = deadline;
  const post = { method: "POST", headers, body, redirect: "manual", signal } as const;
  // Bun's own timeout is off: it is shorter than what `timeouts` may allow.
  const init = { ...post, timeout: false } as const;
  const response = await deadline.waitFor(fetch(url, init), timeouts.headersMs);
  if (!response.ok) {
    const body = readStart(response, MAX_ERROR_BODY_BYTES);
    // The status alone is enough to classify the error.
    const start = await deadline.waitFor(body, timeouts.errorBodyMs).catch(() => undefined);
    // Unlike the text of a buffer, this has no byte order mark, which JSON does not allow.
    throw errorFromResponse(response, new TextDecoder().decode(start));
  }
  if (response.body === null) throw providerErrors.incompleteAnswer();
  return response.body;
}
