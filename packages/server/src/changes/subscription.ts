import type { Logger } from "../observe/log.ts";
import type { ChangeStore, Cursor, LogEntry, SubscriptionWrites } from "./log.ts";

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

export interface Subscription {
  /** Reads the log at once: something was committed here. */
  wake(): void;
  /** Stops it on this node and releases the lease, so that another node takes over immediately. */
  stop(): Promise<void>;
}

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
export const createSubscription = <Tx extends SubscriptionWrites>(
  options: SubscriptionOptions<Tx>,
): Subscription => new LogSubscription(options);

class LogSubscription<Tx extends SubscriptionWrites> implements Subscription {
  readonly #options: SubscriptionOptions<Tx>;
  readonly #pollMs: number;
  readonly #leaseMs: number;
  readonly #running: Promise<void>;
  /** Where a new subscription begins; null until the end of the log is read. */
  #start: Cursor | null;
  /** The stored position; null while this node does not have the lease. */
  #cursor: Cursor | null = null;
  /** When the lease was last claimed or renewed. */
  #leasedAt = 0;
  #failures = 0;
  /** Whether something was committed since the last read of the log began. */
  #isWoken = false;
  #isStopping = false;
  #endPause = () => {};
  #endPauseOnCommit = () => {};

  constructor(options: SubscriptionOptions<Tx>) {
    const { name, from, log, pollMs = POLL_MS, leaseMs = LEASE_MS } = options;
    this.#options = options;
    this.#pollMs = pollMs;
    this.#leaseMs = leaseMs;
    this.#start = from === "now" ? null : from;
    this.#running = this.#run().catch((error) =>
      log.error({ err: error, subscription: name }, "change subscription ended"),
    );
  }

  wake(): void {
    this.#isWoken = true;
    this.#endPauseOnCommit();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#endPause();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { name, log } = this.#options;
    while (!this.#isStopping) {
      try {
        const isIdle = await this.#step();
        this.#failures = 0;
        if (isIdle) await this.#pause(this.#pollMs, this.#cursor !== null);
      } catch (error) {
        log.error({ err: error, subscription: name }, "change subscription failed");
        const backoffMs = this.#pollMs * 2 ** this.#failures++;
        await this.#pause(Math.min(backoffMs, MAX_BACKOFF_MS), false);
      }
    }
    if (this.#cursor !== null) await this.#save(this.#cursor, 0);
  }

  /** Claims the lease if need be and handles one page of the log. True when there was nothing to do. */
  async #step(): Promise<boolean> {
    this.#isWoken = false;
    // Another node may have taken over.
    if (this.#leaseAgeMs() > this.#leaseMs) this.#cursor = null;
    this.#cursor ??= await this.#claim();
    return this.#cursor === null || this.#handlePage(this.#cursor);
  }

  async #claim(): Promise<Cursor | null> {
    const { name, store, node } = this.#options;
    const from = this.#start ?? (await store.changes.head());
    this.#start = from;
    this.#leasedAt = performance.now();
    return store.write((tx) => tx.claimSubscription(name, node, this.#leaseMs, from));
  }

  /** Handles one page of the log. True when there was nothing to handle. */
  async #handlePage(after: Cursor): Promise<boolean> {
    const { name, handler, store, log, batchMs = 0 } = this.#options;
    const entries = await store.changes.read(after, PAGE_ENTRIES);
    if (!entries) {
      log.error({ subscription: name, cursor: after }, "change log pruned before it was handled");
      await this.#moveTo(await store.changes.head());
      return false;
    }
    const last = entries.at(-1);
    if (!last) {
      if (this.#leaseAgeMs() > this.#leaseMs / 3) await this.#moveTo(after);
      return true;
    }
    const work = await handler(entries);
    await this.#moveTo(last.cursor, work ?? undefined);
    if (batchMs > 0 && entries.length < PAGE_ENTRIES) await this.#pause(batchMs, false);
    return false;
  }

  /** Saves the position with the work for the changes before it, and renews the lease. */
  async #moveTo(position: Cursor, work?: HandlerWork<Tx>): Promise<void> {
    this.#leasedAt = performance.now();
    const isSaved = await this.#save(position, this.#leaseMs, work);
    this.#cursor = isSaved ? position : null;
    if (isSaved) work?.stored();
  }

  /**
   * Not synced to disk by itself, because that would slow down the units of other callers. A power cut
   * undoes the latest commits in order: a position that is left is one whose changes were handled, and
   * later changes are handled again.
   */
  #save(position: Cursor, leaseMs: number, work?: HandlerWork<Tx>): Promise<boolean> {
    const { name, store, node } = this.#options;
    return store.note(async (tx) => {
      const isSaved = await tx.saveSubscription(name, node, position, leaseMs);
      if (isSaved) await work?.store(tx);
      return isSaved;
    });
  }

  #leaseAgeMs(): number {
    return performance.now() - this.#leasedAt;
  }

  /** Ends early when the subscription is stopped and, if `endsOnCommit`, when something is committed. */
  async #pause(ms: number, endsOnCommit: boolean): Promise<void> {
    if (this.#isStopping || (endsOnCommit && this.#isWoken)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#endPause = resolve;
    this.#endPauseOnCommit = endsOnCommit ? resolve : () => {};
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
  }
}
