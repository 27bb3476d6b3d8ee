import type { Logger } from "../observe/log.ts";
import type { ChangeStore, Cursor, LogEntry, SubscriptionWrites } from "./log.ts";
import { createPauses } from "./pauses.ts";

const LEASE_MS = 10_000;
/** How often to look for changes of other nodes, and for a lease that nobody renews. */
const POLL_MS = 1000;
const MAX_BACKOFF_MS = 30_000;
const PAGE_ENTRIES = 100;

/**
 * Handles changes as the log has them: without the text of messages, and each entry with its position.
 * If the handler rejects, it is called again with the same entries, with exponential backoff.
 */
export type ChangeHandler<Tx> = (
  entries: readonly LogEntry[],
) => Promise<HandlerWork<Tx> | undefined> | Promise<void> | void;

/** What is left to do for the changes that a handler was called with. */
interface HandlerWork<Tx> {
  /** Takes effect together with the new position, or not at all. */
  store(tx: Tx): Promise<void> | void;
  /** Called once that is committed. */
  stored(): void;
}

export type Subscription = ReturnType<typeof createSubscription>;

export interface SubscriptionOptions<Tx extends SubscriptionWrites> {
  name: string;
  /** Where a new subscription begins; a known one continues from its stored cursor. */
  from: Cursor | "now";
  handler: ChangeHandler<Tx>;
  /** How long to wait after a call of the handler, so that the next one gets more changes at once. */
  batchMs?: number;
  store: Pick<ChangeStore<Tx>, "changes" | "write" | "note">;
  node: string;
  log: Logger;
  pollMs?: number;
  leaseMs?: number;
}

/** Calls the handler with the entries of the log in order, on one node at a time. */
export function createSubscription<Tx extends SubscriptionWrites>(
  options: SubscriptionOptions<Tx>,
) {
  const { name, handler, store, node, log } = options;
  const { batchMs = 0, pollMs = POLL_MS, leaseMs = LEASE_MS } = options;
  /** Where a new subscription begins; null until the end of the log is read. */
  let start: Cursor | null = options.from === "now" ? null : options.from;
  /** The stored position; null while this node does not have the lease. */
  let cursor: Cursor | null = null;
  /** When the lease was last claimed or renewed. */
  let leasedAt = 0;
  let failures = 0;
  /** Whether something was committed since the last read of the log began. */
  let isWoken = false;
  let isStopping = false;
  const { pause, check } = createPauses(() => isStopping);
  const running = run().catch((error) =>
    log.error({ err: error, subscription: name }, "change subscription ended"),
  );

  async function run(): Promise<void> {
    while (!isStopping) {
      try {
        const isIdle = await step();
        failures = 0;
        if (isIdle) await pause(pollMs, () => isWoken && cursor !== null);
      } catch (error) {
        log.error({ err: error, subscription: name }, "change subscription failed");
        await pause(Math.min(pollMs * 2 ** failures++, MAX_BACKOFF_MS));
      }
    }
    if (cursor !== null) await save(cursor, 0);
  }

  /** Claims the lease if need be and handles one page of the log. True when there was nothing to do. */
  async function step(): Promise<boolean> {
    isWoken = false;
    // Another node may have taken over.
    if (leaseAgeMs() > leaseMs) cursor = null;
    cursor ??= await claim();
    return cursor === null || handlePage(cursor);
  }

  async function claim(): Promise<Cursor | null> {
    const from = start ?? (await store.changes.head());
    start = from;
    leasedAt = performance.now();
    return store.write((tx) => tx.claimSubscription(name, node, leaseMs, from));
  }

  /** Handles one page of the log. True when there was nothing to handle. */
  async function handlePage(after: Cursor): Promise<boolean> {
    const entries = await store.changes.read(after, PAGE_ENTRIES);
    if (!entries) {
      log.error({ subscription: name, cursor: after }, "change log pruned before it was handled");
      await moveTo(await store.changes.head());
      return false;
    }
    const last = entries.at(-1);
    if (!last) {
      if (leaseAgeMs() > leaseMs / 3) await moveTo(after);
      return true;
    }
    const work = await handler(entries);
    await moveTo(last.cursor, work ?? undefined);
    if (batchMs > 0 && entries.length < PAGE_ENTRIES) await pause(batchMs);
    return false;
  }

  /** Saves the position with the work for the changes before it, and renews the lease. */
  async function moveTo(position: Cursor, work?: HandlerWork<Tx>): Promise<void> {
    leasedAt = performance.now();
    const isSaved = await save(position, leaseMs, work);
    cursor = isSaved ? position : null;
    if (isSaved) work?.stored();
  }

  /**
   * Not synced to disk by itself, because that would slow down the units of other callers. A power cut
   * undoes the latest commits in order: a position that is left is one whose changes were handled, and
   * later changes are handled again.
   */
  function save(position: Cursor, ms: number, work?: HandlerWork<Tx>): Promise<boolean> {
    return store.note(async (tx) => {
      const isSaved = await tx.saveSubscription(name, node, position, ms);
      if (isSaved) await work?.store(tx);
      return isSaved;
    });
  }

  function leaseAgeMs(): number {
    return performance.now() - leasedAt;
  }

  return {
    /** Reads the log at once: something was committed here. */
    wake(): void {
      isWoken = true;
      check();
    },
    /** Stops it on this node and releases the lease, so that another node takes over immediately. */
    async stop(): Promise<void> {
      isStopping = true;
      check();
      await running;
    },
  };
}
