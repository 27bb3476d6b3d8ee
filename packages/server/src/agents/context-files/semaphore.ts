/** A share of what a semaphore limits. Disposing it gives it back. */
export interface Permit extends Disposable {
  /** Gives back what exceeds this amount. */
  shrink(amount: number): void;
}

interface Waiter {
  readonly amount: number;
  grant(): void;
}

/** Shares a capacity among tasks, in the order in which they ask. */
export class Semaphore {
  readonly #capacity: number;
  #free: number;
  readonly #waiters: Waiter[] = [];

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#free = capacity;
  }

  /** Waits until the amount is free. An amount above the capacity takes all of it. */
  async acquire(wanted: number, signal: AbortSignal): Promise<Permit> {
    signal.throwIfAborted();
    const amount = Math.min(wanted, this.#capacity);
    if (this.#waiters.length === 0 && amount <= this.#free) this.#free -= amount;
    else await this.#wait(amount, signal);
    return this.#permit(amount);
  }

  #wait(amount: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        this.#grantNext();
        reject(signal.reason);
      };
      const waiter: Waiter = {
        amount,
        grant() {
          signal.removeEventListener("abort", abort);
          resolve();
        },
      };
      this.#waiters.push(waiter);
      signal.addEventListener("abort", abort, { once: true });
    });
  }

  #permit(amount: number): Permit {
    let held = amount;
    const shrink = (kept: number) => {
      const given = Math.max(0, held - kept);
      held -= given;
      this.#free += given;
      this.#grantNext();
    };
    return { shrink, [Symbol.dispose]: () => shrink(0) };
  }

  #grantNext(): void {
    for (let [next] = this.#waiters; next && next.amount <= this.#free; [next] = this.#waiters) {
      this.#waiters.shift();
      this.#free -= next.amount;
      next.grant();
    }
  }
}
