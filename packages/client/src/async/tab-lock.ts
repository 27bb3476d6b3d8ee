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

const tabLocks = (): Locks | undefined =>
  (globalThis as { navigator?: { locks?: Locks } }).navigator?.locks;

/** Whether tabs can keep each other out. Pages without TLS cannot. */
export const hasTabLocks = (): boolean => tabLocks() !== undefined;

/**
 * Resolves when no other tab of the origin holds the lock, and at once outside of browsers. The lock
 * is held until the signal is aborted.
 */
export function acquireTabLock(name: string, signal: AbortSignal): Promise<void> {
  const locks = tabLocks();
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
