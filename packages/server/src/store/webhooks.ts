import type { LoggedChange } from "../changes/change.ts";
import type { Cursor } from "./changes.ts";
import { type Either, given, json, NOW, raw, reader, type Sql, sql } from "./sql.ts";

/**
 * Webhooks, and the deliveries that are queued or ended. The deliveries of one webhook and one
 * conversation are a lane: they are sent in the order of their ids, one at a time. A lane that has
 * something to send has the time of its next attempt, by the clock of the store; other lanes have none.
 */
export const webhookReads = {
  /** Ordered by creation. */
  webhooks: (db: Sql) =>
    db.allAs(readWebhook)`SELECT ${WEBHOOK} FROM webhooks ORDER BY created_at, id`,
  webhook: (db: Sql, id: string) =>
    db.getAs(readWebhook)`SELECT ${WEBHOOK} FROM webhooks WHERE id = ${id}`,
  /** Deliveries of a webhook, newest first. */
  deliveries: (db: Sql, { webhookId, status, before, limit }: DeliveryQuery) =>
    db.allAs(readDelivery)`
      SELECT ${DELIVERY} FROM deliveries WHERE ${given({
        "webhook_id = ?": webhookId,
        "status = ?": status,
        "id < ?": before,
      })} ORDER BY id DESC LIMIT ${limit}`,
  delivery: (db: Sql, id: number) =>
    db.getAs(readDelivery)`SELECT ${DELIVERY} FROM deliveries WHERE id = ${id}`,
  /** The oldest deliveries of a lane that have not ended, oldest first. */
  nextDeliveries: (db: Sql, lane: LaneKey, limit: number) =>
    db.allAs(readDelivery)`
      SELECT ${DELIVERY} FROM deliveries
      WHERE webhook_id = ${lane.webhook_id} AND lane = ${lane.lane} AND status = 'pending'
      ORDER BY id LIMIT ${limit}`,
  /** The ids of webhooks that have a lane whose next attempt is due. */
  dueWebhooks: (db: Sql) => db.column<string>`SELECT id FROM webhooks ${ARE_DUE}`,
  /** The number of deliveries that have not ended, counted up to `most`. */
  pendingDeliveries: (db: Sql, most: number) =>
    db.firstNumber`
      SELECT count(*) AS count
      FROM (SELECT 1 FROM deliveries WHERE status = 'pending' LIMIT ${most}) AS pending`,
};

export const webhookWrites = {
  async insertWebhook(db: Sql, webhook: NewWebhook): Promise<void> {
    await db.insert("webhooks", { ...webhook, events: JSON.stringify(webhook.events) });
  },
  /** Changes the given fields. Changes nothing when there is no such webhook. */
  setWebhook: (db: Sql, id: string, { events, ...fields }: WebhookFields) =>
    db.update("webhooks", { id }, { ...fields, events: events && JSON.stringify(events) }),
  /**
   * Disables a webhook, unless it was disabled or resumed since it was read. Returns whether it did.
   */
  disableWebhook: (db: Sql, { id, resumed_at }: WebhookRecord, reason: DisabledReason) =>
    db.hasChanged`
      UPDATE webhooks SET disabled = ${reason}
      WHERE id = ${id} AND disabled IS NULL AND resumed_at = ${resumed_at}`,
  /** Replaces the sealed secret, unless it was changed since it was read. */
  resealWebhook: (db: Sql, id: string, from: string, to: string) =>
    db.update("webhooks", { id, secret: from }, { secret: to }),
  /**
   * Deletes the webhook. Its lanes and deliveries stay, but are never due; `pruneDeletedWebhooks` deletes
   * them. Returns false when there is no such webhook.
   */
  deleteWebhook: (db: Sql, id: string) => db.hasChanged`DELETE FROM webhooks WHERE id = ${id}`,
  /**
   * Queues deliveries in their order. Leaves out those of webhooks that do not exist, and those whose
   * webhook has a delivery with that `message_id` already.
   */
  async queueDeliveries(db: Sql, deliveries: readonly NewDelivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    const queued = deliveries.map((delivery, place) => ({
      ...delivery,
      place,
      change: JSON.stringify(delivery.change),
    }));
    await db.change`
      INSERT INTO deliveries (webhook_id, message_id, lane, event, change, status, created_at,
        queued_at, attempts, history)
      SELECT webhook_id, message_id, lane, event, change, 'pending', at, at, 0, '[]'
      FROM jsonb_to_recordset(${json(queued)}::jsonb) AS d (place integer, webhook_id text,
        message_id text, lane text, event text, change text, at bigint)
      WHERE EXISTS (SELECT 1 FROM webhooks w WHERE w.id = d.webhook_id)
      ORDER BY place
      ON CONFLICT (webhook_id, message_id) DO NOTHING`;
    await wakeLanes(db, deliveries);
  },
  /** Queues an ended delivery again, ahead of later ones of its lane. */
  async requeueDelivery(db: Sql, delivery: DeliveryRecord, at: number): Promise<void> {
    const queued = { status: "pending", queued_at: at, attempts: 0 };
    await db.update("deliveries", { id: delivery.id }, queued);
    await wakeLanes(db, [delivery]);
  },
  /**
   * Makes all lanes of a webhook that have something to send due now. A lane that may be claimed, because
   * its next attempt is at most `claimMs` away, is due when the claim ends. Stores `at` as the webhook's
   * `resumed_at`: the retries of all its deliveries begin anew.
   */
  async resumeLanes(db: Sql, webhookId: string, claimMs: number, at: number): Promise<void> {
    await db.change`
      UPDATE webhook_lanes AS l SET version = version + 1,
        next_at = CASE WHEN next_at <= ${NOW} + ${claimMs}::bigint THEN next_at ELSE ${NOW} END
      WHERE webhook_id = ${webhookId} AND EXISTS (SELECT 1 FROM deliveries d
        WHERE d.webhook_id = ${webhookId} AND d.lane = l.lane AND d.status = 'pending')`;
    // Last, in the order in which other units lock the rows.
    await db.update("webhooks", { id: webhookId }, { resumed_at: at });
  },
  /**
   * Claims at most `limit` lanes of a webhook: those that have been due for the longest. After `claimMs`
   * they are due again, so that nothing stays claimed when a process ends.
   */
  claimLanes: (db: Sql, webhookId: string, claimMs: number, limit: number) =>
    db.changed<Lane>`
      UPDATE webhook_lanes SET next_at = ${NOW} + ${claimMs}::bigint, claim = claim + 1
      WHERE webhook_id = ${webhookId} AND lane IN (SELECT lane FROM webhook_lanes
        WHERE webhook_id = ${webhookId} AND next_at <= ${FIXED_NOW} ORDER BY next_at LIMIT ${limit}
        FOR UPDATE SKIP LOCKED)
      RETURNING webhook_id, lane, claim, version`,
  /**
   * Records attempts and ends the claim. With `retryMs`, the lane is due after that time; otherwise it is
   * due at once if it has more to send. Returns false, and changes nothing, when the lane was claimed
   * again since.
   */
  async finishAttempts(
    db: Sql,
    { webhook_id, lane, claim }: Lane,
    deliveries: readonly AttemptedDelivery[],
    retryMs: number | null,
  ): Promise<boolean> {
    const isHeld = await db.exists`
      SELECT 1 FROM webhook_lanes
      WHERE webhook_id = ${webhook_id} AND lane = ${lane} AND claim = ${claim}`;
    if (!isHeld) return false;
    for (const { id, status, attempts, history } of deliveries)
      await db.update("deliveries", { id }, { status, attempts, history: JSON.stringify(history) });
    await db.change`
      UPDATE webhook_lanes SET next_at = coalesce(${NOW} + ${retryMs}::bigint,
        CASE WHEN EXISTS (SELECT 1 FROM deliveries d
          WHERE d.webhook_id = ${webhook_id} AND d.lane = ${lane}
          AND d.status = 'pending') THEN ${NOW} END)
      WHERE webhook_id = ${webhook_id} AND lane = ${lane}`;
    return true;
  },
  /** Ends a claim without an attempt. The lane is due again only if its version has increased. */
  async parkLane(db: Sql, { webhook_id, lane, claim, version }: Lane): Promise<void> {
    await db.change`
      UPDATE webhook_lanes SET next_at = CASE WHEN version > ${version} THEN ${NOW} END
      WHERE webhook_id = ${webhook_id} AND lane = ${lane} AND claim = ${claim}`;
  },
  /**
   * Deletes up to `most` ended deliveries of a webhook: those from before a time, and all but the
   * newest `kept`. Returns how many it deleted.
   */
  pruneDeliveries: (db: Sql, { webhookId, before, kept, most }: PruneQuery) =>
    db.change`
      DELETE FROM deliveries WHERE id IN (
        SELECT id FROM deliveries WHERE webhook_id = ${webhookId} AND status <> 'pending'
          AND (queued_at < ${before} OR id <= coalesce((SELECT id FROM deliveries
            WHERE webhook_id = ${webhookId} AND status <> 'pending'
            ORDER BY id DESC LIMIT 1 OFFSET ${kept}), 0))
        ORDER BY id LIMIT ${most})`,
  /**
   * Deletes up to `most` deliveries, and up to `most` lanes, of webhooks that were deleted. Returns how
   * many rows it deleted: if none, no others are left but those that another unit has locked.
   */
  async pruneDeletedWebhooks(db: Sql, most: number): Promise<number> {
    const lanes = await db.change`
      DELETE FROM webhook_lanes WHERE (webhook_id, lane) IN (
        SELECT webhook_id, lane FROM webhook_lanes
        WHERE webhook_id IN (${deletedWebhooks("webhook_lanes")}) LIMIT ${most}
        FOR UPDATE SKIP LOCKED)`;
    const deliveries = await db.change`
      DELETE FROM deliveries WHERE id IN (
        SELECT id FROM deliveries
        WHERE webhook_id IN (${deletedWebhooks("deliveries")}) LIMIT ${most}
        FOR UPDATE SKIP LOCKED)`;
    return lanes + deliveries;
  },
};

/** Makes the lanes of deliveries due that have had nothing to send so far. */
async function wakeLanes(db: Sql, deliveries: readonly LaneKey[]): Promise<void> {
  await db.change`
    INSERT INTO webhook_lanes AS l (webhook_id, lane, next_at, claim, version)
    SELECT webhook_id, lane, ${NOW}, 0, 1
    FROM jsonb_to_recordset(${json(lanesOf(deliveries))}::jsonb) AS d (webhook_id text, lane text)
    WHERE EXISTS (SELECT 1 FROM webhooks w WHERE w.id = d.webhook_id)
    ON CONFLICT (webhook_id, lane)
    DO UPDATE SET next_at = coalesce(l.next_at, excluded.next_at), version = l.version + 1`;
}

/** The lanes of deliveries, in one order for all units, so that these do not block each other. */
function lanesOf(deliveries: readonly LaneKey[]): LaneKey[] {
  const lanes = new Map(
    deliveries.map(({ webhook_id, lane }) => [`${webhook_id} ${lane}`, { webhook_id, lane }]),
  );
  return [...lanes.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, it]) => it);
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

/** Computed once per statement: the index of due lanes cannot be searched for a time that goes on. */
const FIXED_NOW = sql`(SELECT ${NOW})`;

/** PostgreSQL would read all lanes that are due to find those of each webhook. */
const ARE_DUE: Either = {
  postgres: sql`CROSS JOIN LATERAL (
      SELECT 1 FROM webhook_lanes WHERE webhook_id = webhooks.id AND next_at <= ${FIXED_NOW}
      ORDER BY next_at LIMIT 1) due`,
  sqlite: sql`WHERE EXISTS (
      SELECT 1 FROM webhook_lanes l WHERE l.webhook_id = webhooks.id AND l.next_at <= ${NOW})`,
};

const WEBHOOK = raw(
  "id, name, url, secret, events, chat, creator, disabled, since, resumed_at, created_at",
);
export const DELIVERY = raw(
  "id, webhook_id, message_id, lane, event, change, status, created_at, queued_at, attempts, history",
);

const readWebhook = reader<WebhookRecord>({ json: ["events"] });
export const readDelivery = reader<DeliveryRecord>({ json: ["change", "history"] });

/**
 * Selects deleted webhooks that have rows in a table, at least one if there is any. It looks only at the
 * first row after those of each webhook, however many rows there are.
 */
const deletedWebhooks = (table: "deliveries" | "webhook_lanes") =>
  sql`SELECT following.id FROM (
     SELECT (SELECT webhook_id FROM ${raw(table)} WHERE webhook_id > known.id
       ORDER BY webhook_id LIMIT 1) AS id
     FROM (SELECT id FROM webhooks UNION ALL SELECT '') known) following
   WHERE following.id IS NOT NULL
     AND NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.id = following.id)`;
