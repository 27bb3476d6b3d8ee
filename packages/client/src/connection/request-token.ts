import { backoffMs, pause } from "../async/retry.ts";
import type { GetToken } from "../types.ts";

export interface TokenRequest {
  getToken: GetToken;
  /** The token that has ended; the same one again is as good as none. */
  ended: string | null;
  /** How long one call of `getToken` may take. */
  timeoutMs: number;
  /** Shortest and longest pause between calls. */
  pauses: { min: number; max: number };
  signal: AbortSignal;
}

/** Asks for a token until there is one; rejects when the signal says that none is wanted any more. */
export async function requestToken(request: TokenRequest): Promise<string> {
  const { getToken, ended, timeoutMs, pauses, signal } = request;
  for (let tries = 1; ; tries++) {
    const token = await answerOf(getToken, timeoutMs, signal);
    signal.throwIfAborted();
    if (token !== null && token !== ended) return token;
    await pause(backoffMs(tries, pauses), signal);
    signal.throwIfAborted();
  }
}

/** Null if it rejects, or does not answer before the time is up or the signal comes. */
async function answerOf(getToken: GetToken, timeoutMs: number, signal: AbortSignal) {
  const waiting = new AbortController();
  const isLate = pause(timeoutMs, AbortSignal.any([signal, waiting.signal])).then(() => null);
  try {
    return await Promise.race([getToken(), isLate]);
  } catch {
    return null;
  } finally {
    waiting.abort();
  }
}
