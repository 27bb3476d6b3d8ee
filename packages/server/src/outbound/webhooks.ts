import { createPauses } from "../changes/pauses.ts";
import type { Changes } from "../changes/stream.ts";
import type { Metrics } from "../observe/metrics.ts";
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

export type Webhooks = ReturnType<typeof startWebhooks>;

export interface WebhooksOptions extends Omit<Serving, "signal" | "counts"> {
  readonly store: Store;
  readonly changes: Pick<Changes<WriteTx>, "subscribe">;
  readonly metrics: Metrics;
}

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
export function startWebhooks(options: WebhooksOptions) {
  const { store, changes, log } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const served = new Set<Promise<void>>();
  /** Number of lanes that are being served, by webhook. */
  const active = new Map<string, number>();
  const activeOf = (id: string) => active.get(id) ?? 0;
  /** Ends of claims, for the next pass. */
  const ends: EndClaim[] = [];
  let pending = 0;
  let isSubscribed = false;
  let isWoken = false;
  let refreshedAt = Number.NEGATIVE_INFINITY;
  let prunedAt = performance.now();
  const { pause, check } = createPauses(() => signal.aborted);
  const serving: Serving = { ...options, signal, counts: countsIn(options.metrics, () => pending) };

  async function run(): Promise<void> {
    while (!signal.aborted) {
      isWoken = false;
      try {
        await refresh();
        if (isSubscribed) await serveLanes();
        await prune();
      } catch (error) {
        log.error({ err: error }, "webhook queue read failed");
      }
      await pause(PASS_MS, () => ends.length >= FULL_PASS);
      await pause(isSubscribed ? POLL_MS : REFRESH_MS, () => isWoken);
    }
  }

  /** Subscribes once there is a webhook: without one, the change log is not read for webhooks. */
  async function refresh(): Promise<void> {
    if (performance.now() - refreshedAt < REFRESH_MS) return;
    refreshedAt = performance.now();
    if (!isSubscribed) {
      const all = await store.read((tx) => tx.webhooks());
      if (all.length === 0) return;
      isSubscribed = true;
      // After a migration from SQLite to PostgreSQL there are webhooks, but no stored position.
      const from = Math.min(...all.map(({ since }) => since));
      changes.subscribe(WEBHOOK_SUBSCRIPTION, { from, batchMs: PASS_MS }, async (entries) => {
        const deliveries = await queueChanges(entries, options);
        if (deliveries.length === 0) return;
        return { store: (tx) => tx.queueDeliveries(deliveries), stored: wakeSender };
      });
    }
    pending = await store.read((tx) => tx.pendingDeliveries(MAX_COUNTED));
  }

  /** Ends the claims of lanes that were served, claims lanes that are due, and begins to serve them. */
  async function serveLanes(): Promise<void> {
    // Without work, nothing is written.
    if (ends.length === 0 && (await store.read((tx) => tx.dueWebhooks())).length === 0) return;
    const claimed = await endClaims(claimLanes);
    if (claimed.length === 0) return;
    const heads = claimed.map(({ deliveries: [head] }) => head);
    const loaded = await loadDeliveries(heads, options).catch((error) => {
      for (const { lane } of claimed) ends.push((tx) => releaseLane(tx, lane));
      throw error;
    });
    for (const [place, first] of loaded.entries()) serve(claimed[place] as ClaimedLane, first);
  }

  /** Runs the unit after the claims have ended: their lanes may be due again. */
  async function endClaims<Result>(unit: (tx: WriteTx) => Awaitable<Result>): Promise<Result> {
    const ending = ends.splice(0);
    try {
      return await store.note(async (tx) => {
        await Promise.all(ending.map((end) => end(tx)));
        return unit(tx);
      });
    } catch (error) {
      // Tried again in the next pass. An end that always fails must not hold up the others.
      if (error instanceof Unavailable) ends.unshift(...ending);
      throw error;
    }
  }

  async function claimLanes(tx: WriteTx): Promise<ClaimedLane[]> {
    if (signal.aborted) return [];
    const attemptUntil = performance.now() + SERVE_MS;
    const lanes: Lane[] = [];
    // Each gets a share, those with the fewest first: receivers that hang would use all that is free.
    const due = (await tx.dueWebhooks()).toSorted((one, other) => activeOf(one) - activeOf(other));
    for (const [place, id] of due.entries()) {
      const free = MAX_SERVED_LANES - served.size - lanes.length;
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

  function serve(claimed: ClaimedLane, first: Loaded): void {
    const { webhook_id: id } = claimed.lane;
    active.set(id, activeOf(id) + 1);
    const service = serveLane(claimed, first, serving)
      .then((end) => void (end && ends.push(end)))
      .catch((error) => log.error({ err: error, webhook: id }, "webhook attempt failed"))
      .finally(() => {
        if (activeOf(id) > 1) active.set(id, activeOf(id) - 1);
        else active.delete(id);
        served.delete(service);
        wakeSender();
      });
    served.add(service);
  }

  async function prune(): Promise<void> {
    if (performance.now() - prunedAt < PRUNE_MS) return;
    prunedAt = performance.now();
    const before = Date.now() - KEPT_MS;
    for (const { id: webhookId } of await store.read((tx) => tx.webhooks())) {
      const query = { webhookId, before, kept: KEPT_DELIVERIES, most: PRUNED_AT_ONCE };
      // The rest follows in the next pass: meanwhile claims must end in time.
      const pruned = await store.note((tx) => tx.pruneDeliveries(query));
      if (pruned === PRUNED_AT_ONCE) prunedAt = Number.NEGATIVE_INFINITY;
    }
    const left = await store.note((tx) => tx.pruneDeletedWebhooks(PRUNED_AT_ONCE));
    if (left > 0) prunedAt = Number.NEGATIVE_INFINITY;
  }

  function wakeSender(): void {
    isWoken = true;
    check();
  }

  const running = run();
  return {
    /**
     * Reads at once which webhooks there are, and what they are to be sent. Deletes what deleted ones
     * left.
     */
    wake(): void {
      refreshedAt = Number.NEGATIVE_INFINITY;
      prunedAt = Number.NEGATIVE_INFINITY;
      wakeSender();
    },
    async stop(): Promise<void> {
      stopping.abort();
      check();
      await running;
      await Promise.all(served);
      if (ends.length === 0) return;
      await endClaims(() => {}).catch((error) =>
        log.error({ err: error }, "webhook claims not released"),
      );
    },
  };
}

function countsIn(metrics: Metrics, pending: () => number): Serving["counts"] {
  const attempts = "Attempts of this node to deliver to a webhook.";
  const waiting = `Deliveries to webhooks that have not ended, on all nodes, counted up to ${MAX_COUNTED}.`;
  const failed = "Deliveries that this node has given up after three days.";
  const outcomes = ["delivered", "failed"] as const;
  const attempt = metrics.counter("parley_webhook_attempts_total", attempts, "outcome", outcomes);
  const counts: Serving["counts"] = { attempt, givenUp: 0 };
  const givenUp = () => counts.givenUp;
  metrics.watch("parley_webhook_deliveries_pending", "gauge", waiting, pending);
  metrics.watch("parley_webhook_deliveries_failed_total", "counter", failed, givenUp);
  return counts;
}
