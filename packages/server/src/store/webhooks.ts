import type { LoggedChange } from "../changes/change.ts";
import type { Awaitable } from "./awaitable.ts";
import type { Cursor } from "./changes.ts";

/**
 * Webhooks, and the deliveries that are queued or ended. The deliveries of one webhook and one
 * conversation are a lane: they are sent in the order of their ids, one at a time. A lane that has
 * something to send has the time of its next attempt, by the clock of the store; other lanes have none.
 */
export interface WebhookReads {
  /** Ordered by creation. */
  webhooks(): Awaitable<WebhookRecord[]>;
  webhook(id: string): Awaitable<WebhookRecord | null>;
  /** Deliveries of a webhook, newest first. */
  deliveries(query: DeliveryQuery): Awaitable<DeliveryRecord[]>;
  delivery(id: number): Awaitable<DeliveryRecord | null>;
  /** The oldest deliveries of a lane that have not ended, oldest first. */
  nextDeliveries(lane: LaneKey, limit: number): Awaitable<DeliveryRecord[]>;
  /** The ids of webhooks that have a lane whose next attempt is due. */
  dueWebhooks(): Awaitable<string[]>;
  /** The number of deliveries that have not ended, counted up to `most`. */
  pendingDeliveries(most: number): Awaitable<number>;
}

export interface WebhookWrites {
  insertWebhook(webhook: NewWebhook): Awaitable<void>;
  /** Changes the given fields. Changes nothing when there is no such webhook. */
  setWebhook(id: string, fields: WebhookFields): Awaitable<void>;
  /**
   * Disables a webhook, unless it was disabled or resumed since it was read. Returns whether it did.
   */
  disableWebhook(webhook: WebhookRecord, reason: DisabledReason): Awaitable<boolean>;
  /** Replaces the sealed secret, unless it was changed since it was read. */
  resealWebhook(id: string, from: string, to: string): Awaitable<void>;
  /**
   * Deletes the webhook. Its lanes and deliveries stay, but are never due; `pruneDeletedWebhooks` deletes
   * them. Returns false when there is no such webhook.
   */
  deleteWebhook(id: string): Awaitable<boolean>;
  /**
   * Queues deliveries in their order. Leaves out those of webhooks that do not exist, and those whose
   * webhook has a delivery with that `message_id` already.
   */
  queueDeliveries(deliveries: readonly NewDelivery[]): Awaitable<void>;
  /** Queues an ended delivery again, ahead of later ones of its lane. */
  requeueDelivery(delivery: DeliveryRecord, at: number): Awaitable<void>;
  /**
   * Makes all lanes of a webhook that have something to send due now. A lane that may be claimed, because
   * its next attempt is at most `claimMs` away, is due when the claim ends. Stores `at` as the webhook's
   * `resumed_at`: the retries of all its deliveries begin anew.
   */
  resumeLanes(webhookId: string, claimMs: number, at: number): Awaitable<void>;
  /**
   * Claims at most `limit` lanes of a webhook: those that have been due for the longest. After `claimMs`
   * they are due again, so that nothing stays claimed when a process ends.
   */
  claimLanes(webhookId: string, claimMs: number, limit: number): Awaitable<Lane[]>;
  /**
   * Records attempts and ends the claim. With `retryMs`, the lane is due after that time; otherwise it is
   * due at once if it has more to send. Returns false, and changes nothing, when the lane was claimed
   * again since.
   */
  finishAttempts(
    lane: Lane,
    deliveries: readonly AttemptedDelivery[],
    retryMs: number | null,
  ): Awaitable<boolean>;
  /** Ends a claim without an attempt. The lane is due again only if its version has increased. */
  parkLane(lane: Lane): Awaitable<void>;
  /**
   * Deletes up to `most` ended deliveries of a webhook: those from before a time, and all but the
   * newest `kept`. Returns how many it deleted.
   */
  pruneDeliveries(query: PruneQuery): Awaitable<number>;
  /**
   * Deletes up to `most` deliveries, and up to `most` lanes, of webhooks that were deleted. Returns how
   * many rows it deleted: if none, no others are left but those that another unit has locked.
   */
  pruneDeletedWebhooks(most: number): Awaitable<number>;
}

export interface WebhookRecord {
  readonly id: string;
  readonly url: string;
  /** Sealed by the vault. */
  readonly secret: string;
  /** Names of events; empty for all. */
  readonly events: readonly string[];
  /** Unique among those of its creator; null if it has none. */
  readonly name: string | null;
  /** The UUID of the only conversation whose events it receives; null for all. */
  readonly chat: string | null;
  /** The username of the operator who created it; null for a service key. */
  readonly creator: string | null;
  readonly disabled: DisabledReason | null;
  /** The position in the change log when it was created or enabled: it receives what follows. */
  readonly since: Cursor;
  /** When retries of what waited began anew; 0 if they never did. */
  readonly resumed_at: number;
  readonly created_at: number;
}

/**
 * `manual`: by an operation. `gone`: the receiver has answered 410. `creator`: its creator may not read
 * what it is sent any more.
 */
export type DisabledReason = "manual" | "gone" | "creator";

export type NewWebhook = Omit<WebhookRecord, "disabled" | "resumed_at">;
export type WebhookFields = Partial<Pick<WebhookRecord, "url" | "events" | "disabled" | "since">>;

export type DeliveryStatus = "pending" | "delivered" | "failed" | "skipped";

export interface Attempt {
  readonly at: number;
  readonly duration_ms: number;
  /** The status of the response; null when there was none. */
  readonly status: number | null;
  readonly error: string | null;
}

export interface NewDelivery {
  readonly webhook_id: string;
  /** The `webhook-id` header: the same for every attempt. */
  readonly message_id: string;
  readonly lane: string;
  readonly event: string;
  /** As the change log has it, without the text of messages. */
  readonly change: LoggedChange;
  readonly at: number;
}

export interface DeliveryRecord extends Omit<NewDelivery, "at"> {
  readonly id: number;
  readonly status: DeliveryStatus;
  readonly created_at: number;
  /** When it was queued last: retries end a fixed time later, or after its webhook was resumed. */
  readonly queued_at: number;
  readonly attempts: number;
  /** The latest attempts, oldest first. */
  readonly history: readonly Attempt[];
}

/** A delivery as an attempt has changed it. */
export type AttemptedDelivery = Pick<DeliveryRecord, "id" | "status" | "attempts" | "history">;

export interface LaneKey {
  readonly webhook_id: string;
  readonly lane: string;
}

/** A claimed lane. */
export interface Lane extends LaneKey {
  /** Identifies the claim. */
  readonly claim: number;
  /** At least 1. Increases whenever something is queued, and when the lane is resumed. */
  readonly version: number;
}

export interface DeliveryQuery {
  webhookId: string;
  status?: DeliveryStatus | undefined;
  /** Return only deliveries with a lower id. */
  before?: number | undefined;
  limit: number;
}

export interface PruneQuery {
  webhookId: string;
  before: number;
  kept: number;
  most: number;
}
