import type { Logger } from "../observe/log.ts";
import type { Bus } from "./bus.ts";
import type { LoggedChange } from "./change.ts";
import type { ChangeStore, Cursor } from "./log.ts";
import { replayable } from "./replay.ts";

const PAGE_ENTRIES = 200;
/** A timer that fires this many times later than planned means that the process was paused. */
const STALL_FACTOR = 3;

export interface TailOptions {
  store: Pick<ChangeStore, "changes" | "read">;
  bus: Pick<Bus, "isMissing" | "replay" | "lose" | "readStreams" | "ready">;
  /** This node's id: its own changes were delivered when they were committed. */
  node: string;
  log: Logger;
  /** How often to read the log, to find losses that nothing else reveals. */
  everyMs: number;
  /** How often to read it while other nodes cannot be reached and the log is the only source. */
  awayMs: number;
}

export interface Tail {
  /**
   * Reads the log up to its end; resolves when everything that was missing is delivered. One read runs
   * at a time: a call during a read causes another one.
   */
  now(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Tails the change log from its current end, and delivers what other nodes have committed and this
 * one has not received. Its cost depends on the number of changes, not on that of connections.
 */
export async function tailLog(options: TailOptions): Promise<Tail> {
  const tail = new LogTail(options, await options.store.changes.head());
  tail.start();
  return tail;
}

class LogTail implements Tail {
  readonly #options: TailOptions;
  readonly #stepMs: number;
  #cursor: Cursor;
  #reading: Promise<void> | null = null;
  /** Whether `now` was called during a read, which may have missed the reason for the call. */
  #readAgain = false;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TailOptions, cursor: Cursor) {
    this.#options = options;
    this.#stepMs = Math.min(options.awayMs, options.everyMs);
    this.#cursor = cursor;
  }

  start(): void {
    this.#scheduleRead();
  }

  now(): Promise<void> {
    if (this.#reading) this.#readAgain = true;
    this.#reading ??= this.#read();
    return this.#reading;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    // The caller of `now` reports a failed read.
    await this.#reading?.catch(() => undefined);
  }

  async #read(): Promise<void> {
    try {
      do {
        this.#readAgain = false;
        await this.#readToEnd();
      } while (this.#readAgain && !this.#isStopped);
    } finally {
      this.#reading = null;
    }
  }

  async #readToEnd(): Promise<void> {
    const { store, bus, node, log } = this.#options;
    for (;;) {
      const entries = await store.changes.read(this.#cursor, PAGE_ENTRIES, node);
      if (this.#isStopped) return;
      if (!entries) {
        log.error({ cursor: this.#cursor }, "change log pruned before it was read");
        this.#cursor = await store.changes.head();
        bus.lose();
        return;
      }
      for (const entry of entries) {
        await this.#deliver(entry.changes);
        this.#cursor = entry.cursor;
      }
      if (entries.length < PAGE_ENTRIES) return;
    }
  }

  /** Delivers in order, because a change can decide whether the next one has receivers here. */
  async #deliver(changes: readonly LoggedChange[]): Promise<void> {
    const { bus } = this.#options;
    const missing = changes.filter((change) => bus.isMissing(change));
    const resolved = new Map(await this.#resolve(missing));
    for (const change of changes) {
      if (!bus.isMissing(change)) continue;
      const ready = resolved.get(change) ?? (await this.#resolve([change]))[0]?.[1];
      if (ready) await bus.replay(ready);
    }
  }

  async #resolve(changes: readonly LoggedChange[]) {
    if (changes.length === 0) return [];
    const found = await this.#options.store.read((tx) => replayable(tx, changes));
    return found.map((change, index) => [changes[index] as LoggedChange, change] as const);
  }

  /** Reads the log after `everyMs`; after a step if other nodes are away or the process was paused. */
  #scheduleRead(): void {
    if (this.#isStopped) return;
    const { everyMs } = this.#options;
    const startedAt = performance.now();
    let waitedMs = 0;
    const waitStep = () => {
      this.#timer = setTimeout(async () => {
        const lateMs = performance.now() - startedAt - waitedMs;
        waitedMs += this.#stepMs;
        const isAway = await this.#isAway();
        if (this.#isStopped) return;
        const wasPaused = lateMs > STALL_FACTOR * this.#stepMs;
        if (isAway || waitedMs >= everyMs || wasPaused) void this.#readAndSchedule(isAway);
        else waitStep();
      }, this.#stepMs);
      this.#timer.unref();
    };
    waitStep();
  }

  async #readAndSchedule(isAway: boolean): Promise<void> {
    const { log, bus } = this.#options;
    await this.now().catch((error) => log.error({ err: error }, "change log read failed"));
    // The log has no deltas. It has the beginnings of streams, which come first.
    if (isAway) bus.readStreams?.();
    this.#scheduleRead();
  }

  /** Whether other nodes cannot be reached. */
  #isAway(): Promise<boolean> {
    return this.#options.bus.ready().then(
      () => false,
      // It rejects for this reason alone.
      () => true,
    );
  }
}
