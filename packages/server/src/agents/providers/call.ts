import { untilAborted } from "../../security/guarded-fetch.ts";
import type { ModelOutput, ModelRequest } from "./adapter.ts";
import { type AttemptOptions, DEFAULT_TIMEOUTS, type Timeouts } from "./attempt.ts";
import type { ModelSource } from "./index.ts";
import { ProviderError } from "./provider-errors.ts";

export interface CallOptions extends Partial<Omit<AttemptOptions, "timeouts">> {
  timeouts?: Partial<Timeouts>;
  retry?: Partial<Retry>;
  /** Called when an attempt starts, with its number from one. */
  onAttempt?: (attempt: number) => void;
  /** Called when an attempt has failed before its first output and another one follows. */
  onRetry?: () => void;
  /** Waits between attempts. Must reject when the signal aborts. */
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

const DEFAULT_RETRY = {
  maxAttempts: 3,
  /** Before the second attempt, without jitter. Doubles with each further one. */
  backoffMs: 500,
  /** A provider that asks for a longer wait is not retried. */
  maxRetryAfterMs: 30_000,
};
type Retry = typeof DEFAULT_RETRY;

/**
 * Calls a model and yields its answer as it arrives: texts that concatenate to the answer and
 * never split a character, thoughts, tool calls once they are complete, usage as soon as it is
 * known, and exactly one `end`, as the last output. Tool calls must be made only after the end.
 *
 * Throws a `ProviderError` when the call fails, and the signal's reason when it is aborted. Either
 * can happen after text, thoughts and tool calls. Retryable errors are retried with backoff, but only
 * before the first output: the provider charges for what the model has produced. The connection to the
 * provider closes as soon as the signal aborts or the caller stops reading. Packets are read ahead of
 * the caller only during backpressure. An answer that exceeds `max_output_tokens` by far is cut off, so
 * time and memory are bounded.
 */
export async function* callModel(
  source: ModelSource,
  request: ModelRequest,
  options: CallOptions = {},
): AsyncGenerator<ModelOutput> {
  const attemptOptions: AttemptOptions = {
    fetch: options.fetch ?? fetch,
    timeouts: { ...DEFAULT_TIMEOUTS, ...options.timeouts },
    backpressure: options.backpressure,
  };
  const retry = { ...DEFAULT_RETRY, ...options.retry };
  const attemptOnce = source.prepare(request);
  for (let attempt = 1; ; attempt++) {
    options.onAttempt?.(attempt);
    let hasYielded = false;
    try {
      for await (const output of attemptOnce(attemptOptions)) {
        hasYielded = true;
        yield output;
      }
      return;
    } catch (error) {
      request.signal.throwIfAborted();
      if (hasYielded || !canRetry(error, attempt, retry)) throw error;
      options.onRetry?.();
      await (options.sleep ?? sleep)(retryDelayMs(error, attempt, retry), request.signal);
    }
  }
}

function canRetry(error: unknown, attempt: number, retry: Retry): error is ProviderError {
  if (!(error instanceof ProviderError) || !error.retryable) return false;
  return attempt < retry.maxAttempts && (error.retry_after_ms ?? 0) <= retry.maxRetryAfterMs;
}

/** Exponential backoff with jitter, so that turns which failed together do not retry together. */
function retryDelayMs(error: ProviderError, attempt: number, { backoffMs }: Retry): number {
  const jitter = 0.5 + Math.random() / 2;
  return (error.retry_after_ms ?? 0) + backoffMs * 2 ** (attempt - 1) * jitter;
}

/** Resolves after the given time. Rejects with the signal's reason as soon as it aborts. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await untilAborted(promise, signal).finally(() => clearTimeout(timer));
}
