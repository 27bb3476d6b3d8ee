import { pause, retryDelayMs } from "../async/retry.ts";
import { isCallError, mayRetry } from "../errors.ts";
import { GIVE_UP_MS } from "./lease.ts";

/** Text is batched for this long, so that several turns stay below the rate limit together. */
const FLUSH_MS = 100;
/** The most code units of one write: at most three bytes each. */
const MAX_WRITE_LENGTH = 8192;
/** A turn without text is kept by an empty write this often. */
const KEEP_MS = 10_000;

export interface AnswerWriterOptions {
  /** Appends text at an offset in bytes. */
  write(delta: string, offset: number): Promise<{ offset: number }>;
  /** The service has ended the turn, or could not be reached for too long. */
  onLost(error: unknown): void;
}

/**
 * Writes an answer in order, one call at a time. A call without a reply is repeated: the offset tells
 * whether the first one was carried out.
 */
export class AnswerWriter {
  readonly #options: AnswerWriterOptions;
  readonly #closed = new AbortController();
  readonly #keeper: ReturnType<typeof setInterval>;
  #unsent = "";
  /** The first half of a character whose second half follows with the next text. */
  #half = "";
  /** The length of the stored answer in bytes. */
  #offset = 0;
  #flushing: Promise<void> | null = null;
  /** When the last call succeeded. The first text does not wait. */
  #calledAt = 0;
  #isEnding = false;
  #error: { readonly reason: unknown } | null = null;

  constructor(options: AnswerWriterOptions) {
    this.#options = options;
    this.#keeper = setInterval(() => this.#keep(), KEEP_MS / 2);
  }

  /** Resolves when the text is stored. A program may ignore the promise. */
  write(text: string): Promise<void> {
    if (this.#error) return ignorable(Promise.reject(this.#error.reason));
    const joined = this.#half + text;
    const isSplit = /[\ud800-\udbff]$/.test(joined);
    this.#half = isSplit ? joined.slice(-1) : "";
    this.#unsent += storable(isSplit ? joined.slice(0, -1) : joined);
    if (this.#unsent === "") return Promise.resolve();
    this.#flushing ??= this.#flush();
    return ignorable(this.#flushing);
  }

  /** Resolves when all text is stored. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.#unsent += storable(this.#half);
    this.#half = "";
    while (this.#unsent !== "" || this.#flushing) {
      if (this.#error) throw this.#error.reason;
      this.#flushing ??= this.#flush();
      await this.#flushing;
    }
    if (this.#error) throw this.#error.reason;
  }

  /** Nothing is written any more. */
  close(reason: unknown): void {
    clearInterval(this.#keeper);
    this.#error ??= { reason };
    this.#closed.abort();
  }

  /** Not called without text to write, or something to keep. */
  async #flush(isKeeping = false): Promise<void> {
    try {
      if (isKeeping) await this.#send("");
      while (this.#unsent !== "") {
        const waitMs = this.#calledAt + FLUSH_MS - Date.now();
        const isFull = this.#unsent.length >= MAX_WRITE_LENGTH;
        if (waitMs > 0 && !isFull && !this.#isEnding) await pause(waitMs, this.#closed.signal);
        const delta = cut(this.#unsent);
        await this.#send(delta);
        this.#unsent = this.#unsent.slice(delta.length);
      }
    } catch (error) {
      const isFirst = this.#error === null;
      this.close(error);
      if (isFirst) this.#options.onLost(error);
      throw error;
    } finally {
      this.#flushing = null;
    }
  }

  async #send(delta: string): Promise<void> {
    const end = this.#offset + new TextEncoder().encode(delta).length;
    const until = Date.now() + GIVE_UP_MS;
    for (let failures = 0; ; failures++) {
      if (this.#error) throw this.#error.reason;
      try {
        await this.#options.write(delta, this.#offset);
        break;
      } catch (error) {
        // An earlier attempt was carried out, and its reply was lost.
        if (isCallError(error) && error.offset === end) break;
        if (!mayRetry(error) || Date.now() > until) throw error;
        await pause(retryDelayMs(failures, error), this.#closed.signal);
      }
    }
    this.#offset = end;
    this.#calledAt = Date.now();
  }

  #keep(): void {
    if (this.#flushing || Date.now() - this.#calledAt < KEEP_MS / 2) return;
    this.#flushing = ignorable(this.#flush(true));
  }
}

function ignorable(promise: Promise<void>): Promise<void> {
  // A caller that ignores the promise must not cause an unhandled rejection.
  promise.catch(() => {});
  return promise;
}

/** The service stores no NUL and no halves of characters. */
const storable = (text: string) => text.toWellFormed().replaceAll("\0", "\ufffd");

/** The start of the text that fits one write, without splitting a character. */
function cut(text: string): string {
  if (text.length <= MAX_WRITE_LENGTH) return text;
  const start = text.slice(0, MAX_WRITE_LENGTH);
  return /[\ud800-\udbff]$/.test(start) ? start.slice(0, -1) : start;
}
