import { failures } from "./failures.ts";

/**
 * Ends one try: when the caller's signal says so, when the provider lets a limit pass, and in any
 * case when disposed. Ending aborts `signal`, which closes the connection.
 */
export class Guard implements Disposable {
  readonly #caller: AbortSignal;
  readonly #controller = new AbortController();
  readonly #followCaller = () => this.#end(this.#caller.reason);
  #deadline = Number.POSITIVE_INFINITY;
  #wakesAt = Number.POSITIVE_INFINITY;
  #watchdog: NodeJS.Timeout | undefined;
  /** As `signal.aborted` says, which is slow to ask for each packet. */
  #ended = false;
  #interrupt: (reason: unknown) => void = () => {};

  constructor(caller: AbortSignal) {
    caller.throwIfAborted();
    caller.addEventListener("abort", this.#followCaller, { once: true });
    this.#caller = caller;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * Waits for a step of the connection, at most so long. Throws why the try ended, if it did, and
   * a `ProviderError` for whatever else went wrong. Does not rely on the step to heed `signal`.
   */
  async within<T>(ms: number, step: Promise<T>): Promise<T> {
    const ended = Promise.withResolvers<never>();
    this.#interrupt = ended.reject;
    if (this.signal.aborted) ended.reject(this.signal.reason);
    const timer = setTimeout(() => this.#end(failures.tooSlow()), ms);
    try {
      return await Promise.race([ended.promise, step]);
    } catch (error) {
      throw this.signal.aborted ? this.signal.reason : failures.unreachable(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * The same for one of many steps, without a timer and a race for each: the deadline moves, the
   * timer stays. It relies on the step to end when `signal` does, or by what `onEnd` does.
   */
  async soon<T>(ms: number, step: Promise<T>): Promise<T> {
    this.#deadline = performance.now() + ms;
    if (this.#deadline < this.#wakesAt) this.#watch();
    try {
      return await step;
    } catch (error) {
      this.check();
      throw failures.unreachable(error);
    } finally {
      // While nothing is awaited there is no hurry.
      this.#deadline = Number.POSITIVE_INFINITY;
    }
  }

  /** Throws why the try ended, if it did. */
  check(): void {
    if (this.#ended) throw this.signal.reason;
  }

  /** Called, at most once, when the try ends. */
  onEnd(listener: () => void): void {
    this.signal.addEventListener("abort", listener, { once: true });
  }

  readonly #watch = () => {
    clearTimeout(this.#watchdog);
    this.#wakesAt = Number.POSITIVE_INFINITY;
    const left = this.#deadline - performance.now();
    if (left <= 0) return this.#end(failures.tooSlow());
    if (!Number.isFinite(left)) return;
    this.#wakesAt = this.#deadline;
    this.#watchdog = setTimeout(this.#watch, left);
  };

  [Symbol.dispose](): void {
    clearTimeout(this.#watchdog);
    this.#caller.removeEventListener("abort", this.#followCaller);
    this.#controller.abort();
  }

  #end(reason: unknown): void {
    this.#ended = true;
    this.#controller.abort(reason);
    this.#interrupt(reason);
  }
}
