import { untilAborted } from "../../security/guarded-fetch.ts";

/** Resolves after the given time. Rejects with the signal's reason as soon as it aborts. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await untilAborted(promise, signal).finally(() => clearTimeout(timer));
}
