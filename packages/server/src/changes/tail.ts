import type { Logger } from "../observe/log.ts";
import type { Bus } from "../realtime/bus.ts";
import type { Store } from "../store/store.ts";
import type { LoggedChange } from "./change.ts";
import { replayable } from "./replay.ts";

/** How many entries are read at a time. */
const PAGE_ENTRIES = 200;
/** A timer that fires this many times later than planned means that the process was paused. */
const STALL_FACTOR = 3;

export interface TailOptions {
  store: Pick<Store, "changes" | "read">;
  bus: Pick<Bus, "isMissing" | "replay" | "lose" | "ready">;
  /** This node's id: its own changes were delivered when they were committed. */
  node: string;
  log: Logger;
  /** How often to read the log, to find losses that nothing else reveals. */
  everyMs: number;
  /** How often to read it while other nodes cannot be reached and the log is the only source. */
  awayMs: number;
}

export interface Tail {
  /** Reads the log up to its end; resolves when everything that was missing is delivered. */
  now(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Follows the change log from where it ended at the start, and delivers what other nodes have
 * committed and this one has not received. The cost follows what changed, not who is connected.
 */
export async function followLog(options: TailOptions): Promise<Tail> {
  const { store, bus, node, log, everyMs } = options;
  const stepMs = Math.min(options.awayMs, everyMs);
  let cursor = await store.changes.head();
  let reading: Promise<void> | null = null;
  let again = false;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;

  async function readToEnd(): Promise<void> {
    for (;;) {
      const entries = await store.changes.read(cursor, PAGE_ENTRIES, node);
      if (stopped) return;
      if (!entries) {
        log.error({ cursor }, "change log pruned before it was read");
        cursor = await store.changes.head();
        bus.lose();
        return;
      }
      for (const entry of entries) {
        await deliver(entry.changes);
        cursor = entry.cursor;
      }
      if (entries.length < PAGE_ENTRIES) return;
    }
  }

  /** Delivers in order, because a change can decide whether the next one has receivers here. */
  async function deliver(changes: readonly LoggedChange[]): Promise<void> {
    const missing = changes.filter((change) => bus.isMissing(change));
    const resolved = new Map(await resolve(missing));
    for (const change of changes) {
      if (!bus.isMissing(change)) continue;
      const ready = resolved.get(change) ?? (await resolve([change]))[0]?.[1];
      if (ready) await bus.replay(ready);
    }
  }

  async function resolve(changes: readonly LoggedChange[]) {
    if (changes.length === 0) return [];
    const found = await store.read((tx) => replayable(tx, changes));
    return found.map((change, index) => [changes[index] as LoggedChange, change] as const);
  }

  /** One read at a time. A call during a read is followed by another read. */
  function now(): Promise<void> {
    if (reading) again = true;
    reading ??= (async () => {
      try {
        do {
          again = false;
          await readToEnd();
        } while (again && !stopped);
      } finally {
        reading = null;
      }
    })();
    return reading;
  }

  async function tick(): Promise<void> {
    await now().catch((error) => log.error({ err: error }, "reading the change log failed"));
    schedule();
  }

  function schedule(): void {
    if (stopped) return;
    const startedAt = performance.now();
    let waitedMs = 0;
    const wait = () => {
      timer = setTimeout(async () => {
        const lateMs = performance.now() - startedAt - waitedMs;
        waitedMs += stepMs;
        const isAway = await bus.ready().then(
          () => false,
          () => true,
        );
        if (stopped) return;
        if (isAway || waitedMs >= everyMs || lateMs > STALL_FACTOR * stepMs) void tick();
        else wait();
      }, stepMs);
      timer.unref();
    };
    wait();
  }
  schedule();

  return {
    now,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await reading?.catch(() => undefined);
    },
  };
}
