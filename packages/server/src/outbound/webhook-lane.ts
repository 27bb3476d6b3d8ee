import type { Logger } from "../observe/log.ts";
import type { Awaitable } from "../store/awaitable.ts";
import type { WriteTx } from "../store/store.ts";
import type {
  Attempt,
  AttemptedDelivery,
  DeliveryRecord,
  DeliveryStatus,
  Lane,
  WebhookRecord,
} from "../store/webhooks.ts";
import { attemptDelivery, type Loaded, loadDeliveries, type Sending } from "./webhook-attempt.ts";
import type { CreatorChecks } from "./webhook-creator.ts";

const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 60 * 60 * 1000;
const RETRY_FOR_MS = 3 * 24 * 60 * 60 * 1000;
const KEPT_ATTEMPTS = 20;

const GONE = 410;

export interface ClaimedLane {
  readonly lane: Lane;
  /** What it has to send, oldest first; at least one. */
  readonly deliveries: readonly [DeliveryRecord, ...DeliveryRecord[]];
  /** No further attempt begins after this time of `performance.now()`. */
  readonly attemptUntil: number;
}

export interface Serving extends Sending, CreatorChecks {
  readonly log: Logger;
  /** Counts for the metrics. */
  readonly counts: { attempt(outcome: "delivered" | "failed"): void; givenUp: number };
}

/** Ends the claim of a lane in a unit of work. */
export type EndClaim = (tx: WriteTx) => Awaitable<unknown>;

/**
 * Sends the deliveries of a claimed lane one after another, until one fails. The first one is loaded.
 * Returns how to end the claim; null when it has ended.
 */
export async function serveLane(
  { lane, deliveries, attemptUntil }: ClaimedLane,
  first: Loaded,
  serving: Serving,
): Promise<EndClaim | null> {
  const { log, counts, signal, audit } = serving;
  /** The deliveries that were attempted or skipped. */
  const ended: AttemptedDelivery[] = [];

  async function sendDeliveries(): Promise<EndClaim | null> {
    for (const delivery of deliveries) {
      const { webhook, body } = ended.length === 0 ? first : await load(delivery);
      if (webhook?.disabled !== null) break;
      if (ended.length > 0 && performance.now() > attemptUntil) break;
      if (body === null) {
        ended.push({ ...delivery, status: "skipped" });
        continue;
      }
      const attempt = await attemptDelivery(webhook, delivery, body, serving);
      const { attempted, retryMs } = outcomeOf(delivery, attempt, webhook);
      ended.push(attempted);
      if (attempt.status === GONE) return disable(webhook);
      if (attempt.error !== null) return (tx) => tx.finishAttempts(lane, ended, retryMs);
    }
    return (tx) => (ended.length > 0 ? tx.finishAttempts(lane, ended, null) : tx.parkLane(lane));
  }

  async function load(delivery: DeliveryRecord): Promise<Loaded> {
    const [loaded] = await loadDeliveries([delivery], serving);
    return loaded ?? { webhook: null, body: null };
  }

  /** `retryMs` is null when there is no retry. */
  function outcomeOf(delivery: DeliveryRecord, attempt: Attempt, webhook: WebhookRecord) {
    const { id, queued_at } = delivery;
    const { resumed_at } = webhook;
    const attempts = delivery.attempts + 1;
    const history = [...delivery.history, attempt].slice(-KEPT_ATTEMPTS);
    const outcome = (status: DeliveryStatus, retryMs: number | null) => ({
      attempted: { id, attempts, history, status },
      retryMs,
    });
    counts.attempt(attempt.error === null ? "delivered" : "failed");
    if (attempt.error === null) return outcome("delivered", null);
    if (attempt.status === GONE) return outcome("pending", null);
    const sinceResumed = history.filter(({ at }) => at >= resumed_at).length;
    const retryMs = retryDelayMs(Math.min(attempts, sinceResumed));
    const retryUntil = Math.max(queued_at, resumed_at) + RETRY_FOR_MS;
    if (Date.now() + retryMs < retryUntil) return outcome("pending", retryMs);
    counts.givenUp++;
    log.warn({ webhook: webhook.id, delivery: id, attempts }, "webhook delivery given up");
    return outcome("failed", null);
  }

  /** Records the attempts, and disables the webhook unless they were made to a former address. */
  async function disable(webhook: WebhookRecord): Promise<null> {
    await audit.write(async (tx, record) => {
      const isHeld = await tx.finishAttempts(lane, ended, null);
      if (isHeld && (await tx.disableWebhook(webhook, "gone"))) {
        await record("webhook_disabled", { webhook: webhook.id });
      }
    });
    return null;
  }

  try {
    return await sendDeliveries();
  } catch (error) {
    if (!signal.aborted) {
      if (ended.length === 0) throw error;
      log.error({ err: error, webhook: lane.webhook_id }, "webhook attempt failed");
    }
    if (ended.length > 0) return (tx) => tx.finishAttempts(lane, ended, null);
    return (tx) => releaseLane(tx, lane);
  }
}

/** Makes a claimed lane due at once, for another node, the next pass or the next start. */
export const releaseLane = (tx: WriteTx, lane: Lane) => tx.parkLane({ ...lane, version: 0 });

/** Exponential backoff with jitter after a number of attempts. */
export const retryDelayMs = (attempts: number, random = Math.random()) =>
  Math.round(Math.min(FIRST_RETRY_MS * 2 ** (attempts - 1), MAX_RETRY_MS) * (0.5 + random / 2));
