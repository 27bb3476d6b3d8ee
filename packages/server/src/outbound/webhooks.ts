import type { Changes } from "../changes/stream.ts";
import type { Logger } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { SecurityLog } from "../observe/security-log.ts";
import type { GuardedFetch } from "../security/guarded-fetch.ts";
import type { Vault } from "../security/vault.ts";
import type { Store, WriteTx } from "../store/store.ts";
import type {
  Attempt,
  AttemptedDelivery,
  DeliveryRecord,
  Lane,
  WebhookRecord,
} from "../store/webhooks.ts";
import { ATTEMPT_TIMEOUT_MS, attemptDelivery, type Loaded, loadNext } from "./webhook-attempt.ts";
import { disableUnreadable } from "./webhook-creator.ts";
import { queueChanges } from "./webhook-queue.ts";

export interface Webhooks {
  /** Reads at once which webhooks there are, and what they are to be sent. */
  wake(): void;
  stop(): Promise<void>;
}

export interface WebhooksOptions {
  readonly store: Store;
  readonly changes: Pick<Changes, "subscribe">;
  readonly vault: Vault;
  readonly fetch: GuardedFetch;
  readonly security: SecurityLog;
  /** The operators of PARLEY_OPERATORS. */
  readonly operators: readonly string[];
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** The name of the subscription that queues deliveries. */
export const WEBHOOK_SUBSCRIPTION = "webhooks";

/** How often to look for lanes that are due. */
const POLL_MS = 1000;
/** How often to look for new webhooks of other nodes, while there are none, and to count. */
const REFRESH_MS = 5000;
const PRUNE_MS = 60_000;
/** A claim is longer than an attempt: the margin is for reading before it and writing after it. */
const CLAIM_MS = ATTEMPT_TIMEOUT_MS + 5000;
/** Attempts at the same time: to one webhook, so that a receiver that hangs does not stop the others. */
const ATTEMPTS_PER_WEBHOOK = 8;
const MAX_ATTEMPTS = 64;
const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 60 * 60 * 1000;
const DAY_MS = 24 * 60 * 60 * 1000;
const RETRY_FOR_MS = 3 * DAY_MS;
/** Attempts that a delivery keeps. */
const KEPT_ATTEMPTS = 20;
/** Ended deliveries that are kept, by number for each webhook and by age. */
const KEPT_DELIVERIES = 1000;
const KEPT_MS = 7 * DAY_MS;
const PRUNED_AT_ONCE = 500;
/** Counting more would cost too much. */
const MAX_COUNTED = 100_000;

const GONE = 410;

/** Queues events for webhooks as they are committed, on one node, and sends them, on all nodes. */
export const webhooks = (options: WebhooksOptions): Webhooks => new WebhookSender(options);

class WebhookSender implements Webhooks {
  readonly #options: WebhooksOptions;
  readonly #stopping = new AbortController();
  readonly #attempts = new Set<Promise<void>>();
  /** Attempts in progress by webhook. */
  readonly #active = new Map<string, number>();
  readonly #outcomes = { delivered: 0, failed: 0 };
  readonly #running: Promise<void>;
  #given = 0;
  #pending = 0;
  #isSubscribed = false;
  #isWoken = false;
  #refreshedAt = Number.NEGATIVE_INFINITY;
  #prunedAt = performance.now();
  #endPause = () => {};

  constructor(options: WebhooksOptions) {
    this.#options = options;
    this.#watch(options.metrics);
    this.#running = this.#run();
  }

  wake(): void {
    this.#refreshedAt = Number.NEGATIVE_INFINITY;
    this.#wakeSender();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#endPause();
    await this.#running;
    await Promise.all(this.#attempts);
  }

  #watch(metrics: Metrics): void {
    metrics.watch(
      "parley_webhook_deliveries_pending",
      "gauge",
      `Deliveries to webhooks that have not ended, on all nodes, counted up to ${MAX_COUNTED}.`,
      () => this.#pending,
    );
    metrics.watch(
      "parley_webhook_attempts_total",
      "counter",
      "Attempts of this node to deliver to a webhook.",
      () =>
        Object.entries(this.#outcomes).map(([outcome, value]) => ({ labels: { outcome }, value })),
    );
    metrics.watch(
      "parley_webhook_deliveries_failed_total",
      "counter",
      "Deliveries that this node has given up after three days.",
      () => this.#given,
    );
  }

  async #run(): Promise<void> {
    const { log } = this.#options;
    while (!this.#stopping.signal.aborted) {
      this.#isWoken = false;
      try {
        await this.#refresh();
        if (this.#isSubscribed) await this.#startAttempts();
        await this.#prune();
      } catch (error) {
        log.error({ err: error }, "webhook delivery failed");
      }
      await this.#pause(this.#isSubscribed ? POLL_MS : REFRESH_MS);
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
      changes.subscribe(WEBHOOK_SUBSCRIPTION, { from }, async (entries) => {
        await queueChanges(entries, this.#options);
        this.#wakeSender();
      });
    }
    this.#pending = await store.read((tx) => tx.pendingDeliveries(MAX_COUNTED));
  }

  async #startAttempts(): Promise<void> {
    const { store, log } = this.#options;
    const due = await store.read((tx) => tx.dueWebhooks());
    // The lanes of a disabled webhook are parked below.
    await disableUnreadable(due, this.#options);
    for (const id of due) {
      const free = ATTEMPTS_PER_WEBHOOK - (this.#active.get(id) ?? 0);
      const limit = Math.min(free, MAX_ATTEMPTS - this.#attempts.size);
      if (limit <= 0 || this.#stopping.signal.aborted) continue;
      for (const lane of await store.note((tx) => tx.claimLanes(id, CLAIM_MS, limit))) {
        this.#active.set(id, (this.#active.get(id) ?? 0) + 1);
        const attempt = this.#serveLane(lane)
          .catch((error) => log.error({ err: error, webhook: id }, "webhook delivery failed"))
          .finally(() => this.#endAttempt(id, attempt));
        this.#attempts.add(attempt);
      }
    }
  }

  #endAttempt(webhookId: string, attempt: Promise<void>): void {
    const left = (this.#active.get(webhookId) ?? 1) - 1;
    if (left > 0) this.#active.set(webhookId, left);
    else this.#active.delete(webhookId);
    this.#attempts.delete(attempt);
    this.#wakeSender();
  }

  /** Makes one attempt for a claimed lane. */
  async #serveLane(lane: Lane): Promise<void> {
    const { store, fetch, vault } = this.#options;
    const { signal } = this.#stopping;
    const { webhook, delivery, body }: Loaded = await loadNext(store, lane);
    if (!webhook) return void (await store.note((tx) => tx.deleteWebhook(lane.webhook_id)));
    if (webhook.disabled !== null || !delivery) return store.note((tx) => tx.parkLane(lane));
    if (body === null) return this.#finish(lane, { ...delivery, status: "skipped" }, null);
    try {
      const attempt = await attemptDelivery(webhook, delivery, body, { fetch, vault, signal });
      await this.#record(lane, webhook, delivery, attempt);
    } catch (error) {
      if (!signal.aborted) throw error;
      // Version 0 makes the lane due at once, for another node or the next start.
      await store.note((tx) => tx.parkLane({ ...lane, version: 0 }));
    }
  }

  async #record(
    lane: Lane,
    webhook: WebhookRecord,
    delivery: DeliveryRecord,
    attempt: Attempt,
  ): Promise<void> {
    const attempts = delivery.attempts + 1;
    const history = [...delivery.history, attempt].slice(-KEPT_ATTEMPTS);
    const attempted = { id: delivery.id, attempts, history };
    this.#outcomes[attempt.error === null ? "delivered" : "failed"]++;
    if (attempt.error === null) {
      return this.#finish(lane, { ...attempted, status: "delivered" }, null);
    }
    if (attempt.status === GONE) {
      return this.#disable(webhook, (tx) =>
        tx.finishAttempt(lane, { ...attempted, status: "pending" }, null),
      );
    }
    const retryMs = retryDelayMs(attempts);
    if (Date.now() + retryMs - delivery.queued_at < RETRY_FOR_MS) {
      return this.#finish(lane, { ...attempted, status: "pending" }, retryMs);
    }
    this.#given++;
    this.#options.log.warn(
      { webhook: webhook.id, delivery: delivery.id, attempts },
      "webhook delivery given up",
    );
    return this.#finish(lane, { ...attempted, status: "failed" }, null);
  }

  async #finish(lane: Lane, delivery: AttemptedDelivery, retryMs: number | null): Promise<void> {
    await this.#options.store.note((tx) => tx.finishAttempt(lane, delivery, retryMs));
  }

  #disable({ id }: WebhookRecord, finish: (tx: WriteTx) => unknown): Promise<void> {
    return this.#options.security.write(async (tx, record) => {
      await finish(tx);
      await tx.setWebhook(id, { disabled: "gone" });
      await record("webhook_disabled", { webhook: id });
    });
  }

  async #prune(): Promise<void> {
    if (performance.now() - this.#prunedAt < PRUNE_MS) return;
    this.#prunedAt = performance.now();
    const { store } = this.#options;
    const before = Date.now() - KEPT_MS;
    for (const { id: webhookId } of await store.read((tx) => tx.webhooks())) {
      const query = { webhookId, before, kept: KEPT_DELIVERIES, most: PRUNED_AT_ONCE };
      while ((await store.note((tx) => tx.pruneDeliveries(query))) === PRUNED_AT_ONCE);
    }
  }

  #wakeSender(): void {
    this.#isWoken = true;
    this.#endPause();
  }

  async #pause(ms: number): Promise<void> {
    if (this.#isWoken || this.#stopping.signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#endPause = resolve;
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
  }
}

/** Exponential backoff with jitter after a number of attempts. */
export const retryDelayMs = (attempts: number, random = Math.random()) =>
  Math.round(Math.min(FIRST_RETRY_MS * 2 ** (attempts - 1), MAX_RETRY_MS) * (0.5 + random / 2));
