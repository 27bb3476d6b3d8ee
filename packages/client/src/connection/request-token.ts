import { backoffMs, pause } from "../async/retry.ts";
import type { GetToken } from "../types.ts";

export interface TokenRequest {
  getToken: GetToken;
  /** The token that is no longer accepted. If `getToken` returns it again, that is a failure. */
  rejected: string | null;
  /** How long one call of `getToken` may take. */
  timeoutMs: number;
  backoff: { min: number; max: number };
  signal: AbortSignal;
}

/** Calls `getToken` until it returns a new token. Rejects when the signal is aborted. */
export async function requestToken(request: TokenRequest): Promise<string> {
  const { getToken, rejected, timeoutMs, backoff, signal } = request;
  for (let failures = 1; ; failures++) {
    const token = await callOnce(getToken, timeoutMs, signal);
    signal.throwIfAborted();
    if (token !== null && token !== rejected) return token;
    await pause(backoffMs(failures, backoff), signal);
    signal.throwIfAborted();
  }
}

/** Returns null if `getToken` rejects, times out or the signal is aborted. */
export async function callOnce(
  getToken: GetToken,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<string | null> {
  const done = new AbortController();
  const ends = AbortSignal.any([done.signal, ...(signal ? [signal] : [])]);
  const timeout = pause(timeoutMs, ends).then(() => null);
  try {
    return await Promise.race([getToken(), timeout]);
  } catch {
    // The caller calls it again.
    return null;
  } finally {
    done.abort();
  }
}
