import { acquireTabLock } from "../async/tab-lock.ts";

/** What this tab sends, or waits for: no other tab sends it meanwhile. */
export class UnsentLocks {
  /** By the id of a message or change: aborted to release its lock, or to stop waiting for it. */
  readonly #locks = new Map<string, AbortController>();

  has(id: string): boolean {
    return this.#locks.has(id);
  }

  /** Resolves when no other tab sends it. */
  acquire(id: string): Promise<void> {
    const lock = new AbortController();
    this.#locks.set(id, lock);
    return acquireTabLock(`parley:unsent:${id}`, lock.signal);
  }

  release(id: string): void {
    this.#locks.get(id)?.abort();
    this.#locks.delete(id);
  }

  releaseAll(): void {
    for (const id of this.#locks.keys()) this.release(id);
  }
}
