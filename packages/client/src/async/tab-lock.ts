import { pause } from "./retry.ts";

/** A tab that holds the lock may be suspended by the browser, so others go on without it. */
const MAX_WAIT_MS = 60_000;

/** The part of the Web Locks API that is used. */
interface Locks {
  request(
    name: string,
    options: { signal: AbortSignal },
    task: () => Promise<void>,
  ): Promise<unknown>;
}

/**
 * Resolves when no other tab of the origin holds the lock, and at once outside of browsers. The lock
 * is held until the signal is aborted.
 */
export function acquireTabLock(name: string, signal: AbortSignal): Promise<void> {
  const { navigator } = globalThis as { navigator?: { locks?: Locks } };
  const locks = navigator?.locks;
  if (!locks) return Promise.resolve();
  return new Promise((resolve) => {
    const done = new AbortController();
    const waiting = AbortSignal.any([signal, done.signal]);
    const hold = () => {
      resolve();
      return new Promise<void>((released) => {
        if (signal.aborted) released();
        else signal.addEventListener("abort", () => released());
      });
    };
    // It rejects when the wait is over, or where locks are forbidden.
    locks.request(name, { signal: waiting }, hold).catch(() => resolve());
    void pause(MAX_WAIT_MS, signal).then(() => done.abort());
  });
}
