import { untilAborted } from "../../security/guarded-fetch.ts";

/** Shares a capacity among tasks, in the order in which they ask. */
export class Semaphore {
  readonly #capacity: number;
  #free: number;
  readonly #waiters = new Set<{ readonly amount: number; grant(): void }>();

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#free = capacity;
  }

  /** Waits until the amount is free. An amount above the capacity takes all of it. */
  async acquire(wanted: number, signal: AbortSignal) {
    signal.throwIfAborted();
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { amount: Math.min(wanted, this.#capacity), grant: resolve };
    this.#waiters.add(waiter);
    this.#grantNext();
    await untilAborted(promise, signal).catch((error) => {
      const wasGranted = !this.#waiters.delete(waiter);
      this.#release(wasGranted ? waiter.amount : 0);
      throw error;
    });
    let held = waiter.amount;
    /** Gives back what exceeds this amount. */
    const shrink = (kept: number) => {
      const given = Math.max(0, held - kept);
      held -= given;
      this.#release(given);
    };
    return { shrink, [Symbol.dispose]: () => shrink(0) };
  }

  #release(amount: number): void {
    this.#free += amount;
    this.#grantNext();
  }

  #grantNext(): void {
    for (const waiter of this.#waiters) {
      if (waiter.amount > this.#free) return;
      this.#waiters.delete(waiter);
      this.#free -= waiter.amount;
      waiter.grant();
    }
  }
}
