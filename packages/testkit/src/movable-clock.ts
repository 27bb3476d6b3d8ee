/**
 * The clock of a test server's process, loaded before the program. The test that started the process
 * moves it forward, over the IPC channel that only test servers have. As after the sleep of a machine,
 * timers that became due meanwhile fire once, in the order of their times.
 *
 * `Date`, `performance.now`, timers and `AbortSignal.timeout` of the main thread use it. Workers do not,
 * nor does what the runtime measures itself, such as the idle timeouts of connections.
 */
import { type ClockMove, INITIAL_MOVE } from "./clock.ts";

type Callback = (...values: unknown[]) => void;

const { setTimeout: startTimer, clearTimeout: endTimer } = globalThis;
const realDate = Date.now;
const realNow = performance.now.bind(performance);
const pending = new Set<MovableTimer>();
let aheadMs = Number(process.env[INITIAL_MOVE] ?? 0);

const now = () => realNow() + aheadMs;

/** What `setTimeout` and `setInterval` return. */
class MovableTimer {
  readonly #callback: () => void;
  readonly #ms: number;
  readonly #repeats: boolean;
  #dueAt = 0;
  #isRef = true;
  #timer: NodeJS.Timeout | undefined;

  constructor(callback: () => void, ms: unknown, repeats: boolean) {
    this.#callback = callback;
    this.#ms = Math.max(1, Number(ms) || 0);
    this.#repeats = repeats;
    this.refresh();
  }

  get dueAt(): number {
    return this.#dueAt;
  }

  /** Waits for the rest of the time, which has become shorter when the clock has moved. */
  wait(): void {
    endTimer(this.#timer);
    this.#timer = startTimer(() => this.#fire(), Math.max(0, Math.ceil(this.#dueAt - now())));
    if (!this.#isRef) this.#timer.unref();
  }

  #fire(): void {
    if (this.#repeats) this.refresh();
    else pending.delete(this);
    this.#callback();
  }

  refresh(): this {
    this.#dueAt = now() + this.#ms;
    pending.add(this);
    this.wait();
    return this;
  }

  close(): this {
    pending.delete(this);
    endTimer(this.#timer);
    return this;
  }

  ref(): this {
    this.#isRef = true;
    this.#timer?.ref();
    return this;
  }

  unref(): this {
    this.#isRef = false;
    this.#timer?.unref();
    return this;
  }

  hasRef(): boolean {
    return this.#isRef;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

const timers =
  (repeats: boolean) =>
  (callback: Callback, ms?: unknown, ...values: unknown[]) =>
    new MovableTimer(() => callback(...values), ms, repeats);

const clear = (timer: unknown) => {
  if (timer instanceof MovableTimer) timer.close();
};

const movedDate = () => realDate() + aheadMs;

/** Without arguments, the time of the moved clock. */
const MovableDate = new Proxy(Date, {
  apply: () => new Date(movedDate()).toString(),
  construct: (target, values, made) =>
    Reflect.construct(target, values.length > 0 ? values : [movedDate()], made),
});

Date.now = movedDate;
performance.now = now;
Bun.sleep = (ms) =>
  new Promise((resolve) => void setTimeout(resolve, ms instanceof Date ? +ms - Date.now() : ms));
AbortSignal.timeout = (ms) => {
  const controller = new AbortController();
  const reason = new DOMException("The operation timed out.", "TimeoutError");
  new MovableTimer(() => controller.abort(reason), ms, false).unref();
  return controller.signal;
};
Object.assign(globalThis, {
  Date: MovableDate,
  setTimeout: timers(false),
  setInterval: timers(true),
  clearTimeout: clear,
  clearInterval: clear,
});

process.on("message", ({ id, ms }: ClockMove) => {
  aheadMs += ms;
  for (const timer of [...pending].toSorted((one, other) => one.dueAt - other.dueAt)) timer.wait();
  // After the timers that are due.
  startTimer(() => process.send?.(id), 0);
});
// The process ends without waiting for the channel.
process.channel?.unref();
