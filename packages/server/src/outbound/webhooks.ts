import type { Changes } from "../changes/stream.ts";
import type { Logger } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { AuditLog } from "../security/audit-log.ts";
import type { GuardedFetch } from "../security/guarded-fetch.ts";
import type { Vault } from "../security/vault.ts";
import type { Awaitable } from "../store/awaitable.ts";
import { type Store, Unavailable, type WriteTx } from "../store/store.ts";
import type { Lane } from "../store/webhooks.ts";
import { ATTEMPT_TIMEOUT_MS, type Loaded, loadDeliveries } from "./webhook-attempt.ts";
import {
  type ClaimedLane,
  type EndClaim,
  releaseLane,
  type Serving,
  serveLane,
} from "./webhook-lane.ts";
import { queueChanges } from "./webhook-queue.ts";

export interface Webhooks {
  /**
   * Reads at once which webhooks there are, and what they are to be sent. Deletes what deleted ones left.
   */
  wake(): void;
  stop(): Promise<void>;
}

export interface WebhooksOptions {
  readonly store: Store;
  readonly changes: Pick<Changes<WriteTx>, "subscribe">;
  readonly vault: Vault;
  readonly fetch: GuardedFetch;
  readonly audit: AuditLog;
  /** The operators of PARLEY_OPERATORS. */
  readonly operators: readonly string[];
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** The name of the subscription that queues deliveries. */
export const WEBHOOK_SUBSCRIPTION = "webhooks";

/** How often to look for lanes that are due. */
const POLL_MS = 1000;
/** How often to look for the first webhook, which another node may add, and to count deliveries. */
const REFRESH_MS = 5000;
const PRUNE_MS = 60_000;
/**
 * The pause between passes: long enough that under load a transaction serves several lanes, short
 * enough not to matter to a receiver.
 */
const PASS_MS = 20;
/** This many claims to end begin a pass at once, so that the pause does not limit the throughput. */
const FULL_PASS = 4;
/** Deliveries that are sent with one claim of a lane, and for how long further ones are begun. */
const LANE_DELIVERIES = 16;
const SERVE_MS = 1000;
/** A claim is longer than its attempts: the margin is for reading before and writing after them. */
export const CLAIM_MS = SERVE_MS + ATTEMPT_TIMEOUT_MS + 5000;
/**
 * Lanes that are served at the same time: of one webhook, so that a receiver that hangs does not stop the
 * others, and of all.
 */
const LANES_PER_WEBHOOK = 8;
const MAX_SERVED_LANES = 64;
/** Ended deliveries that are kept, by number for each webhook and by age. */
const KEPT_DELIVERIES = 1000;
const KEPT_MS = 7 * 24 * 60 * 60 * 1000;
const PRUNED_AT_ONCE = 500;
/** Counting more would block the event loop for milliseconds on SQLite. */
const MAX_COUNTED = 10_000;

/** Queues events for webhooks as they are committed, on one node, and sends them, on all nodes. */
export const startWebhooks = (options: WebhooksOptions): Webhooks => new WebhookSender(options);

class WebhookSender implements Webhooks {
  readonly #options: WebhooksOptions;
  readonly #stopping = new AbortController();
  readonly #serving = new Set<Promise<void>>();
  /** Number of lanes that are being served, by webhook. */
  readonly #active = new Map<string, number>();
  /** Ends of claims, for the next pass. */
  readonly #ending: EndClaim[] = [];
  readonly #counts: Serving["counts"];
  readonly #running: Promise<void>;
  #pending = 0;
  #isSubscribed = false;
  #isWoken = false;
  #refreshedAt = Number.NEGATIVE_INFINITY;
  #prunedAt = performance.now();
  #endPause = () => {};

  constructor(options: WebhooksOptions) {
    this.#options = options;
    this.#counts = {
      attempt: options.metrics.counter(
        "parley_webhook_attempts_total",
        "Attempts of this node to deliver to a webhook.",
        "outcome",
        ["delivered", "failed"],
      ),
      givenUp: 0,
    };
    this.#watch(options.metrics);
    this.#running = this.#run();
  }

  wake(): void {
    this.#refreshedAt = Number.NEGATIVE_INFINITY;
    this.#prunedAt = Number.NEGATIVE_INFINITY;
    this.#wakeSender();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#endPause();
    await this.#running;
    await Promise.all(this.#serving);
    if (this.#ending.length === 0) return;
    const { log } = this.#options;
    await this.#endClaims(() => {}).catch((error) =>
      log.error({ err: error }, "webhook claims not released"),
    );
  }

  #watch(metrics: Metrics): void {
    metrics.watch(
      "parley_webhook_deliveries_pending",
      "gauge",
      `Deliveries to webhooks that have not ended, on all nodes, counted up to ${MAX_COUNTED}.`,
      () => this.#pending,
    );
    metrics.watch(
      "parley_webhook_deliveries_failed_total",
      "counter",
      "Deliveries that this node has given up after three days.",
      () => this.#counts.givenUp,
    );
  }

  async #run(): Promise<void> {
    const { log } = this.#options;
    while (!this.#stopping.signal.aborted) {
      this.#isWoken = false;
      try {
        await this.#refresh();
        if (this.#isSubscribed) await this.#serveLanes();
        await this.#prune();
      } catch (error) {
        log.error({ err: error }, "webhook queue read failed");
      }
      await this.#pause(PASS_MS, () => this.#ending.length >= FULL_PASS);
      await this.#pause(this.#isSubscribed ? POLL_MS : REFRESH_MS, () => this.#isWoken);
    }
  }

  /** Subscribes once there is a webhook: without one, the change log is not read for webhooks. */
  async #refresh(): Promise<void> {
    if (performance.now() - this.#refreshedAt < REFRESH_MS) return;
    const { store, changes } = this.#options;
    this.#refreshedAt = performance.now();
    if (!this.#isSubscribed) {
      const all = await store.read((tx) => tx.webhooks());
      if (all.length === 0) return;
      this.#isSubscribed = true;
      // After a migration from SQLite to PostgreSQL there are webhooks, but no stored position.
      const from = Math.min(...all.map(({ since }) => since));
      const options = { from, batchMs: PASS_MS };
      changes.subscribe(WEBHOOK_SUBSCRIPTION, options, async (entries) => {
        const deliveries = await queueChanges(entries, this.#options);
        if (deliveries.length === 0) return;
        return {
          store: (tx) => tx.queueDeliveries(deliveries),
          stored: () => this.#wakeSender(),
        };
      });
    }
    this.#pending = await store.read((tx) => tx.pendingDeliveries(MAX_COUNTED));
  }

  /** Ends the claims of lanes that were served, claims lanes that are due, and begins to serve them. */
  async #serveLanes(): Promise<void> {
    // Without work, nothing is written.
    if (this.#ending.length === 0 && !(await this.#isAnythingDue())) return;
    const claimed = await this.#endClaims((tx) => this.#claimLanes(tx));
    if (claimed.length === 0) return;
    const heads = claimed.map(({ deliveries: [head] }) => head);
    const loaded = await loadDeliveries(heads, this.#options).catch((error) => {
      for (const { lane } of claimed) this.#ending.push((tx) => releaseLane(tx, lane));
      throw error;
    });
    for (const [place, first] of loaded.entries()) {
      this.#serve(claimed[place] as ClaimedLane, first);
    }
  }

  async #isAnythingDue(): Promise<boolean> {
    return (await this.#options.store.read((tx) => tx.dueWebhooks())).length > 0;
  }

  /** Runs the unit after the claims have ended: their lanes may be due again. */
  async #endClaims<Result>(unit: (tx: WriteTx) => Awaitable<Result>): Promise<Result> {
    const ending = this.#ending.splice(0);
    try {
      return await this.#options.store.note(async (tx) => {
        await Promise.all(ending.map((end) => end(tx)));
        return unit(tx);
      });
    } catch (error) {
      // Tried again in the next pass. An end that always fails must not hold up the others.
      if (error instanceof Unavailable) this.#ending.unshift(...ending);
      throw error;
    }
  }

  async #claimLanes(tx: WriteTx): Promise<ClaimedLane[]> {
    if (this.#stopping.signal.aborted) return [];
    const attemptUntil = performance.now() + SERVE_MS;
    const lanes: Lane[] = [];
    const activeOf = (id: string) => this.#active.get(id) ?? 0;
    // Each gets a share, those with the fewest first: receivers that hang would use all that is free.
    const due = (await tx.dueWebhooks()).toSorted((one, other) => activeOf(one) - activeOf(other));
    for (const [place, id] of due.entries()) {
      const free = MAX_SERVED_LANES - this.#serving.size - lanes.length;
      const share = Math.ceil(free / (due.length - place));
      const limit = Math.min(share, LANES_PER_WEBHOOK - activeOf(id));
      if (limit > 0) lanes.push(...(await tx.claimLanes(id, CLAIM_MS, limit)));
    }
    const next = await Promise.all(lanes.map((lane) => tx.nextDeliveries(lane, LANE_DELIVERIES)));
    const claimed: ClaimedLane[] = [];
    for (const [place, lane] of lanes.entries()) {
      const [head, ...others] = next[place] ?? [];
      if (head) claimed.push({ lane, deliveries: [head, ...others], attemptUntil });
      else await tx.parkLane(lane);
    }
    return claimed;
  }

  #serve(claimed: ClaimedLane, first: Loaded): void {
    const { log } = this.#options;
    const { webhook_id: id } = claimed.lane;
    const serving = { ...this.#options, signal: this.#stopping.signal, counts: this.#counts };
    this.#active.set(id, (this.#active.get(id) ?? 0) + 1);
    const served = serveLane(claimed, first, serving)
      .then((end) => void (end && this.#ending.push(end)))
      .catch((error) => log.error({ err: error, webhook: id }, "webhook attempt failed"))
      .finally(() => this.#endServing(id, served));
    this.#serving.add(served);
  }

  #endServing(webhookId: string, served: Promise<void>): void {
    const left = (this.#active.get(webhookId) ?? 1) - 1;
    if (left > 0) this.#active.set(webhookId, left);
    else this.#active.delete(webhookId);
    this.#serving.delete(served);
    this.#wakeSender();
  }

  async #prune(): Promise<void> {
    if (performance.now() - this.#prunedAt < PRUNE_MS) return;
    this.#prunedAt = performance.now();
    const { store } = this.#options;
    const before = Date.now() - KEPT_MS;
    for (const { id: webhookId } of await store.read((tx) => tx.webhooks())) {
      const query = { webhookId, before, kept: KEPT_DELIVERIES, most: PRUNED_AT_ONCE };
      // The rest follows in the next pass: meanwhile claims must end in time.
      const pruned = await store.note((tx) => tx.pruneDeliveries(query));
      if (pruned === PRUNED_AT_ONCE) this.#prunedAt = Number.NEGATIVE_INFINITY;
    }
    const left = await store.note((tx) => tx.pruneDeletedWebhooks(PRUNED_AT_ONCE));
    if (left > 0) this.#prunedAt = Number.NEGATIVE_INFINITY;
  }

  #wakeSender(): void {
    this.#isWoken = true;
    this.#endPause();
  }

  /** Ends early when the sender is woken and `isOver`, or stopped. */
  async #pause(ms: number, isOver: () => boolean): Promise<void> {
    const { signal } = this.#stopping;
    if (signal.aborted || isOver()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#endPause = () => {
      if (signal.aborted || isOver()) resolve();
    };
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
  }
}
