import { failures } from "./failures.ts";

/**
 * Ends one try: when the caller's signal says so, when the provider lets a limit pass, and in any
 * case when disposed. Ending aborts `signal`, which closes the connection.
 */
export class Guard implements Disposable {
  readonly #caller: AbortSignal;
  readonly #controller = new AbortController();
  readonly #followCaller = () => this.#end(this.#caller.reason);
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

  [Symbol.dispose](): void {
    this.#caller.removeEventListener("abort", this.#followCaller);
    this.#controller.abort();
  }

  #end(reason: unknown): void {
    this.#controller.abort(reason);
    this.#interrupt(reason);
  }
}
