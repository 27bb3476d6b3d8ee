import type { Logger } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Store } from "../store/store.ts";

export interface JobOptions {
  readonly store: Pick<Store, "read" | "write">;
  readonly node: string;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Runs work now, at intervals and on demand, never twice at once. `stop` aborts it and waits for it. */
export function runRegularly(everyMs: number, work: (signal: AbortSignal) => Promise<unknown>) {
  const stopping = new AbortController();
  const { signal } = stopping;
  let running: Promise<void> | null = null;
  let isWanted = false;
  async function runAll(): Promise<void> {
    while (isWanted && !signal.aborted) {
      isWanted = false;
      await work(signal);
    }
  }
  const run = () => {
    isWanted = true;
    running ??= runAll().finally(() => {
      running = null;
    });
  };
  run();
  const timer = setInterval(run, everyMs);
  timer.unref();
  return {
    run,
    async stop(): Promise<void> {
      clearInterval(timer);
      stopping.abort();
      await running;
    },
  };
}

/** How long a lease holds without renewal: after a crash, another process waits that long. */
const LEASE_MS = 10_000;
/** How old a lease may become before it is renewed. */
const RENEW_MS = LEASE_MS / 4;

export type Proceed = () => Promise<void>;

/** A lease in the store, which one process has at a time. `holder` is unique among all processes. */
export function createLease(store: Pick<Store, "write">, name: string, holder: string) {
  let renewedAt: number | null = null;
  const held = {
    /** Returns whether this process has it now. */
    async claim(): Promise<boolean> {
      const cursor = await store.write((tx) => tx.claimSubscription(name, holder, LEASE_MS, 0));
      renewedAt = cursor === null ? null : performance.now();
      return cursor !== null;
    },
    /** Renews it if it is due. Throws when another process has taken it over. */
    async renew(): Promise<void> {
      if (renewedAt !== null && performance.now() - renewedAt < RENEW_MS) return;
      if (!(await store.write((tx) => tx.saveSubscription(name, holder, 0, LEASE_MS)))) {
        throw new Error(`the lease ${name} was taken over`);
      }
      renewedAt = performance.now();
    },
    async release(): Promise<void> {
      if (renewedAt === null) return;
      renewedAt = null;
      await store.write((tx) => tx.saveSubscription(name, holder, 0, 0));
    },
    /**
     * Claims it, does the work and releases it. The work calls `proceed` between two steps: that renews
     * the lease, and ends the work once the signal aborts. Returns false if another process has the lease.
     */
    async hold(signal: AbortSignal, work: (proceed: Proceed) => Promise<void>): Promise<boolean> {
      if (!(await held.claim())) return false;
      try {
        await work(async () => {
          signal.throwIfAborted();
          await held.renew();
        });
      } catch (error) {
        if (error !== signal.reason) throw error;
      } finally {
        await held.release();
      }
      return true;
    },
  };
  return held;
}
