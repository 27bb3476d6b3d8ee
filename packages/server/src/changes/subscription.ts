import type { Logger } from "../observe/log.ts";
import type { Cursor, LogEntry } from "../store/changes.ts";
import type { Store } from "../store/store.ts";
import type { Change } from "./change.ts";
import { replayable } from "./replay.ts";

const LEASE_MS = 10_000;
/** How often to look for changes of other nodes, and for a lease that nobody renews. */
const POLL_MS = 1000;
const MAX_BACKOFF_MS = 30_000;
const PAGE_ENTRIES = 100;

/** If it rejects, it is called again with the same changes, with exponential backoff. */
export type ChangeHandler = (changes: readonly Change[], cursor: Cursor) => Promise<void> | void;

export interface Subscription {
  /** Something was committed here. */
  wake(): void;
  /** Stops it on this node and releases the lease, so that another node takes over immediately. */
  stop(): Promise<void>;
}

export interface SubscriptionOptions {
  name: string;
  /** Where a new subscription begins; a known one continues from its stored cursor. */
  from: Cursor | "now";
  handler: ChangeHandler;
  store: Pick<Store, "changes" | "read" | "write">;
  node: string;
  log: Logger;
  pollMs?: number;
  leaseMs?: number;
}

/** Calls the handler with the entries of the log in order, on one node at a time. */
export function subscription(options: SubscriptionOptions): Subscription {
  const { name, handler, store, node, log, pollMs = POLL_MS, leaseMs = LEASE_MS } = options;
  let cursor: Cursor | null = null;
  let stopping = false;
  let failures = 0;
  /** When the lease was last claimed or renewed. */
  let leasedAt = 0;
  let isWoken = false;
  let wake = () => {};
  let endPause = () => {};
  let start = options.from === "now" ? null : options.from;

  async function run(): Promise<void> {
    while (!stopping) {
      try {
        isWoken = false;
        // Another node may have taken over.
        if (performance.now() - leasedAt > leaseMs) cursor = null;
        cursor ??= await claim();
        const isIdle = cursor === null || (await handleNext(cursor));
        failures = 0;
        if (isIdle) await pause(pollMs, cursor !== null);
      } catch (error) {
        log.error({ err: error, subscription: name }, "change subscription failed");
        await pause(Math.min(pollMs * 2 ** failures++, MAX_BACKOFF_MS), false);
      }
    }
    if (cursor !== null) await save(cursor, 0);
  }

  async function claim(): Promise<Cursor | null> {
    start ??= await store.changes.head();
    const from = start;
    leasedAt = performance.now();
    return store.write((tx) => tx.claimSubscription(name, node, leaseMs, from));
  }

  /** Handles one page of the log. True when there was nothing to handle. */
  async function handleNext(after: Cursor): Promise<boolean> {
    const entries = await store.changes.read(after, PAGE_ENTRIES);
    if (!entries) {
      log.error({ subscription: name, cursor: after }, "change log pruned before it was handled");
      await moveTo(await store.changes.head());
      return false;
    }
    const last = entries.at(-1);
    if (!last) {
      if (performance.now() - leasedAt > leaseMs / 3) await moveTo(after);
      return true;
    }
    await handler(await resolve(entries), last.cursor);
    await moveTo(last.cursor);
    return false;
  }

  const resolve = (entries: readonly LogEntry[]) =>
    store.read((tx) =>
      replayable(
        tx,
        entries.flatMap(({ changes }) => changes),
      ),
    );

  async function moveTo(position: Cursor): Promise<void> {
    leasedAt = performance.now();
    cursor = (await save(position, leaseMs)) ? position : null;
  }

  const save = (position: Cursor, lease: number) =>
    store.write((tx) => tx.saveSubscription(name, node, position, lease));

  /** Ends early when the subscription is stopped and, if `endsOnCommit`, when something is committed. */
  async function pause(ms: number, endsOnCommit: boolean): Promise<void> {
    if (stopping || (endsOnCommit && isWoken)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    endPause = resolve;
    wake = endsOnCommit ? resolve : () => {};
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
  }

  const running = run().catch((error) =>
    log.error({ err: error, subscription: name }, "change subscription ended"),
  );
  return {
    wake() {
      isWoken = true;
      wake();
    },
    async stop() {
      stopping = true;
      endPause();
      await running;
    },
  };
}
