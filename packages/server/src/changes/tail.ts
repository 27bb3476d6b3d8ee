import type { Logger } from "../observe/log.ts";
import type { Bus } from "./bus.ts";
import type { LoggedChange } from "./change.ts";
import type { ChangeStore } from "./log.ts";
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

/**
 * Tails the change log from its current end, and delivers what other nodes have committed and this
 * one has not received. Its cost depends on the number of changes, not on that of connections.
 */
export async function tailLog({ store, bus, node, log, everyMs, awayMs }: TailOptions) {
  const stepMs = Math.min(awayMs, everyMs);
  let cursor = await store.changes.head();
  let reading: Promise<void> | null = null;
  /** Whether `now` was called during a read, which may have missed the reason for the call. */
  let readAgain = false;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  scheduleRead();

  async function read(): Promise<void> {
    try {
      do {
        readAgain = false;
        await readToEnd();
      } while (readAgain && !isStopped);
    } finally {
      reading = null;
    }
  }

  async function readToEnd(): Promise<void> {
    for (;;) {
      const entries = await store.changes.read(cursor, PAGE_ENTRIES, node);
      if (isStopped) return;
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

  /** Reads the log after `everyMs`; after a step if other nodes are away or the process was paused. */
  function scheduleRead(): void {
    if (isStopped) return;
    const startedAt = performance.now();
    let waitedMs = 0;
    const waitStep = () => {
      timer = setTimeout(async () => {
        const lateMs = performance.now() - startedAt - waitedMs;
        waitedMs += stepMs;
        const isAway = await isUnreachable(bus);
        if (isStopped) return;
        const wasPaused = lateMs > STALL_FACTOR * stepMs;
        if (isAway || waitedMs >= everyMs || wasPaused) void readAndSchedule(isAway);
        else waitStep();
      }, stepMs);
      timer.unref();
    };
    waitStep();
  }

  async function readAndSchedule(isAway: boolean): Promise<void> {
    await now().catch((error) => log.error({ err: error }, "change log read failed"));
    // The log has no deltas. It has the beginnings of streams, which come first.
    if (isAway) bus.readStreams?.();
    scheduleRead();
  }

  function now(): Promise<void> {
    if (reading) readAgain = true;
    reading ??= read();
    return reading;
  }

  return {
    /**
     * Reads the log up to its end; resolves when everything that was missing is delivered. One read runs
     * at a time: a call during a read causes another one.
     */
    now,
    async stop(): Promise<void> {
      isStopped = true;
      clearTimeout(timer);
      // The caller of `now` reports a failed read.
      await reading?.catch(() => undefined);
    },
  };
}

/** Whether other nodes cannot be reached: `ready` rejects for this reason alone. */
const isUnreachable = (bus: Pick<Bus, "ready">) =>
  bus.ready().then(
    () => false,
    () => true,
  );
