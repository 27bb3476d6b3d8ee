import type { Reachability } from "../connection/connectivity.ts";
import { isCallError, mayRetry } from "../errors.ts";

const MAX_ATTEMPTS = 6;
const MIN_DELAY_MS = 500;
const MAX_DELAY_MS = 4000;

/** The delay before the next attempt: what the service asks for, or exponential backoff. */
export const retryDelayMs = (failures: number, error: unknown): number =>
  ((isCallError(error) && error.retryAfter) || 0) * 1000 ||
  Math.min(MAX_DELAY_MS, MIN_DELAY_MS * 2 ** failures);

/** Resolves after the time, or as soon as the signal is aborted. */
export const pause = (ms: number, signal?: AbortSignal) =>
  new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });

/** Exponential backoff with jitter, so that clients do not all reconnect at the same moment. */
export const backoffMs = (failures: number, { min, max }: { min: number; max: number }): number =>
  min + Math.random() * (Math.min(max, min * 2 ** failures) - min);

/**
 * Makes an idempotent call and repeats it after transient failures. Without a connection it waits
 * for the next one.
 */
export async function callWithRetry<Result>(
  reachability: Reachability,
  call: () => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    await reachability.whenReachable();
    try {
      return await call();
    } catch (error) {
      if (!mayRetry(error) || attempt >= MAX_ATTEMPTS) throw error;
      if (reachability.canCall()) await pause(retryDelayMs(attempt - 1, error));
    }
  }
}
