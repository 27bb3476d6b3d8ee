import { untilAborted } from "../../security/guarded-fetch.ts";
import { providerErrors } from "./provider-errors.ts";

/** Ends an attempt on an abort, a timeout or disposal. It aborts `signal`, which closes the connection. */
export class AttemptDeadline implements Disposable {
  readonly #caller: AbortSignal;
  readonly #controller = new AbortController();
  readonly #followCaller = () => this.#end(this.#caller.reason);
  #deadline = Number.POSITIVE_INFINITY;
  #timerFiresAt = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  /** The same as `signal.aborted`, which is too slow to read for each packet. */
  #ended = false;

  constructor(caller: AbortSignal) {
    caller.throwIfAborted();
    caller.addEventListener("abort", this.#followCaller, { once: true });
    this.#caller = caller;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * Waits for a step of the connection. Throws the reason if the attempt ends, and a
   * `ProviderError` for any other error. Works even if the step ignores `signal`.
   */
  async waitFor<T>(step: Promise<T>, timeoutMs: number): Promise<T> {
    const timer = setTimeout(() => this.#end(providerErrors.timeout()), timeoutMs);
    try {
      return await untilAborted(step, this.signal);
    } catch (error) {
      throw this.signal.aborted ? this.signal.reason : providerErrors.unreachable(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * The same as `waitFor` for one of many reads, without a timer and a race for each: the deadline
   * moves while one timer stays. The read must settle when `signal` aborts or `onEnd` is called.
   */
  async waitForRead<T>(read: Promise<T>, timeoutMs: number): Promise<T> {
    this.#deadline = performance.now() + timeoutMs;
    if (this.#deadline < this.#timerFiresAt) this.#checkDeadline();
    try {
      return await read;
    } catch (error) {
      this.throwIfEnded();
      throw providerErrors.unreachable(error);
    } finally {
      // The time between two reads does not count.
      this.#deadline = Number.POSITIVE_INFINITY;
    }
  }

  throwIfEnded(): void {
    if (this.#ended) throw this.signal.reason;
  }

  onEnd(listener: () => void): void {
    this.signal.addEventListener("abort", listener, { once: true });
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#caller.removeEventListener("abort", this.#followCaller);
    this.#controller.abort();
  }

  readonly #checkDeadline = () => {
    clearTimeout(this.#timer);
    this.#timerFiresAt = Number.POSITIVE_INFINITY;
    const leftMs = this.#deadline - performance.now();
    if (leftMs <= 0) return this.#end(providerErrors.timeout());
    if (!Number.isFinite(leftMs)) return;
    this.#timerFiresAt = this.#deadline;
    this.#timer = setTimeout(this.#checkDeadline, leftMs);
  };

  #end(reason: unknown): void {
    this.#ended = true;
    this.#controller.abort(reason);
  }
}
