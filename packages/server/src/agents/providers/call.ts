import { pause } from "./pause.ts";
import { type Adapter, type ModelEvent, type ModelRequest, ProviderError } from "./provider.ts";
import { type StreamOptions, streamAnswer, type Timeouts } from "./stream.ts";

export interface CallOptions extends Partial<Omit<StreamOptions, "timeouts">> {
  timeouts?: Partial<Timeouts>;
  retry?: Partial<Retry>;
  /** Told of every try as it begins, counting from one. */
  onTry?: (attempt: number) => void;
  /** Waits between tries; rejects when the signal aborts. */
  wait?: (ms: number, signal: AbortSignal) => Promise<void>;
}

interface Retry {
  /** Tries in all. */
  tries: number;
  /** The first pause, in milliseconds, before jitter; each further one is twice as long. */
  pause: number;
  /** A provider that asks for a longer pause, in milliseconds, is not tried again. */
  longestPause: number;
}

const defaultTimeouts: Timeouts = {
  headers: 60_000,
  // Models that think at length before they speak, and prompts that take long to read in.
  firstToken: 180_000,
  silence: 60_000,
  tail: 2_000,
  errorBody: 5_000,
};

const defaultRetry: Retry = { tries: 3, pause: 500, longestPause: 30_000 };

/**
 * Calls a model and yields its answer as it comes: texts that concatenate to the answer and never
 * split a character, usage as soon as it is known, and `end` as the last event, exactly once.
 *
 * Throws a `ProviderError` when the call fails, and the signal's reason when it is aborted; both
 * may come after text. Failures that may pass are tried again, but only before the first event.
 * The provider's connection is closed as soon as the signal aborts or the reader stops reading,
 * and only what comes while nothing is wanted is taken in ahead of the reader. An answer that
 * overruns `max_output_tokens` by far is cut off, so that a provider which never ends costs a
 * bounded amount of time and memory.
 */
export async function* callModel(
  adapter: Adapter,
  request: ModelRequest,
  options: CallOptions = {},
): AsyncGenerator<ModelEvent> {
  const { fetch: carrier = fetch, wanted } = options;
  const timeouts = { ...defaultTimeouts, ...options.timeouts };
  const streaming = { fetch: carrier, timeouts, wanted };
  const retry = { ...defaultRetry, ...options.retry };
  const wait = options.wait ?? pause;
  const wire = adapter.request(request);
  for (let attempt = 1; ; attempt++) {
    options.onTry?.(attempt);
    let yielded = false;
    try {
      for await (const event of streamAnswer(adapter, wire, request, streaming)) {
        yielded = true;
        yield event;
      }
      return;
    } catch (error) {
      request.signal.throwIfAborted();
      if (yielded || !mayRepeat(error, attempt, retry)) throw error;
      await wait(pauseAfter(error, attempt, retry), request.signal);
    }
  }
}

function mayRepeat(error: unknown, attempt: number, retry: Retry): error is ProviderError {
  if (!(error instanceof ProviderError) || !error.retryable || attempt >= retry.tries) return false;
  return (error.retry_after_ms ?? 0) <= retry.longestPause;
}

/** Exponential, spread so that turns which failed together do not come back together. */
function pauseAfter(error: ProviderError, attempt: number, retry: Retry): number {
  const backoff = retry.pause * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);
  return (error.retry_after_ms ?? 0) + backoff;
}
