import {
  DELIVERY,
  type DeliveryQueue,
  type DeliveryRow,
  DISABLE_WEBHOOK,
  deliveryQuery,
  fieldColumns,
  INSERT_WEBHOOK,
  lanesOf,
  ORPHANED_DELIVERIES,
  ORPHANED_LANES,
  PRUNE_DELIVERIES,
  REQUEUE_DELIVERY,
  toDelivery,
  toWebhook,
  WEBHOOK,
  type WebhookPruning,
  type WebhookRow,
  type WebhookSettings,
} from "../shared/webhooks.ts";
import { NOW } from "../sql.ts";
import type {
  AttemptedDelivery,
  DeliveryRecord,
  Lane,
  LaneKey,
  WebhookReads,
  WebhookWrites,
} from "../webhooks.ts";
import type { Batch, Methods, Unit } from "./unit.ts";

/** Computed once per statement: the index of due lanes cannot be searched for a time that goes on. */
const FIXED_NOW = `(SELECT ${NOW})`;

const nextDeliveries: Batch<LaneKey & { limit: number }, DeliveryRecord[]> = {
  sql: `SELECT place, ${DELIVERY} FROM jsonb_to_recordset($1::text::jsonb)
      AS l (place integer, of_webhook text, of_lane text, most integer)
    CROSS JOIN LATERAL (SELECT ${DELIVERY} FROM deliveries
      WHERE webhook_id = of_webhook AND lane = of_lane AND status = 'pending'
      ORDER BY id LIMIT most) next
    ORDER BY place, id`,
  writes: false,
  values: (calls) => [
    JSON.stringify(
      calls.map(({ webhook_id, lane, limit }, place) => ({
        place,
        of_webhook: webhook_id,
        of_lane: lane,
        most: limit,
      })),
    ),
  ],
  results: (rows: readonly (DeliveryRow & { place: number })[], calls) => {
    const found: DeliveryRecord[][] = calls.map(() => []);
    for (const { place, ...row } of rows) found[place]?.push(toDelivery(row));
    return found;
  },
};

export const webhookReads: Methods<keyof WebhookReads> = {
  webhooks: async (unit) => {
    const rows = await unit.all<WebhookRow>(
      `SELECT ${WEBHOOK} FROM webhooks ORDER BY created_at, id`,
    );
    return rows.map(toWebhook);
  },
  webhook: async (unit, id) => {
    const row = await unit.get<WebhookRow>(`SELECT ${WEBHOOK} FROM webhooks WHERE id = $1`, id);
    return row && toWebhook(row);
  },
  deliveries: async (unit, query) => {
    const { sql, values } = deliveryQuery(query);
    return (await unit.all<DeliveryRow>(sql, ...values)).map(toDelivery);
  },
  delivery: async (unit, id) => {
    const row = await unit.get<DeliveryRow>(`SELECT ${DELIVERY} FROM deliveries WHERE id = $1`, id);
    return row && toDelivery(row);
  },
  nextDeliveries: (unit, { webhook_id, lane }, limit) =>
    unit.together(nextDeliveries, { webhook_id, lane, limit }),
  dueWebhooks: async (unit) => {
    const rows = await unit.all<{ id: string }>(
      `SELECT id FROM webhooks CROSS JOIN LATERAL (
         SELECT 1 FROM webhook_lanes WHERE webhook_id = webhooks.id AND next_at <= ${FIXED_NOW}
         ORDER BY next_at LIMIT 1) due`,
    );
    return rows.map(({ id }) => id);
  },
  pendingDeliveries: async (unit, most) => {
    const row = await unit.get<{ count: number }>(
      `SELECT count(*) AS count
       FROM (SELECT 1 FROM deliveries WHERE status = 'pending' LIMIT $1) pending`,
      most,
    );
    return Number(row?.count ?? 0);
  },
};

const webhookSettings: Methods<WebhookSettings> = {
  insertWebhook: async (unit, webhook) => {
    const { id, name, url, secret, events, chat, creator, since, created_at } = webhook;
    await unit.write(
      INSERT_WEBHOOK,
      id,
      url,
      secret,
      JSON.stringify(events),
      chat,
      creator,
      since,
      created_at,
      name,
    );
  },
  setWebhook: async (unit, id, fields) => {
    for (const [column, value] of fieldColumns(fields)) {
      await unit.write(`UPDATE webhooks SET ${column} = $1 WHERE id = $2`, value, id);
    }
  },
  disableWebhook: async (unit, { id, resumed_at }, reason) => {
    const { count } = await unit.write(DISABLE_WEBHOOK, reason, id, resumed_at);
    return count > 0;
  },
  resealWebhook: async (unit, id, from, to) => {
    await unit.write("UPDATE webhooks SET secret = $3 WHERE id = $1 AND secret = $2", id, from, to);
  },
  deleteWebhook: async (unit, id) => {
    const { count } = await unit.write("DELETE FROM webhooks WHERE id = $1", id);
    return count > 0;
  },
};

const deliveryQueue: Methods<DeliveryQueue> = {
  queueDeliveries: async (unit, deliveries) => {
    if (deliveries.length === 0) return;
    await unit.write(
      `INSERT INTO deliveries (webhook_id, message_id, lane, event, change, status, created_at,
         queued_at, attempts, history)
       SELECT webhook_id, message_id, lane, event, change, 'pending', at, at, 0, '[]'
       FROM jsonb_to_recordset($1::text::jsonb)
         AS d (place integer, webhook_id text, message_id text, lane text, event text, change text, at bigint)
       WHERE EXISTS (SELECT 1 FROM webhooks w WHERE w.id = d.webhook_id)
       ORDER BY place
       ON CONFLICT (webhook_id, message_id) DO NOTHING`,
      JSON.stringify(
        deliveries.map((delivery, place) => ({
          ...delivery,
          place,
          change: JSON.stringify(delivery.change),
        })),
      ),
    );
    await wakeLanes(unit, lanesOf(deliveries));
  },
  requeueDelivery: async (unit, delivery, at) => {
    await unit.write(REQUEUE_DELIVERY, at, delivery.id);
    await wakeLanes(unit, [delivery]);
  },
  resumeLanes: async (unit, webhookId, claimMs, at) => {
    await unit.write(
      `UPDATE webhook_lanes l SET version = version + 1,
         next_at = CASE WHEN next_at <= ${NOW} + $2 THEN next_at ELSE ${NOW} END
       WHERE webhook_id = $1 AND EXISTS (SELECT 1 FROM deliveries d
         WHERE d.webhook_id = $1 AND d.lane = l.lane AND d.status = 'pending')`,
      webhookId,
      claimMs,
    );
    // Last, in the order in which other units lock the rows.
    await unit.write("UPDATE webhooks SET resumed_at = $1 WHERE id = $2", at, webhookId);
  },
};

const pruning: Methods<WebhookPruning> = {
  pruneDeliveries: async (unit, { webhookId, before, kept, most }) => {
    const { count } = await unit.write(PRUNE_DELIVERIES, webhookId, before, kept, most);
    return count;
  },
  pruneDeletedWebhooks: async (unit, most) => {
    const lanes = await unit.write(
      `DELETE FROM webhook_lanes
       WHERE (webhook_id, lane) IN (${ORPHANED_LANES} FOR UPDATE SKIP LOCKED)`,
      most,
    );
    const deliveries = await unit.write(
      `DELETE FROM deliveries WHERE id IN (${ORPHANED_DELIVERIES} FOR UPDATE SKIP LOCKED)`,
      most,
    );
    return lanes.count + deliveries.count;
  },
};

/** Makes lanes due that have nothing to send so far. */
async function wakeLanes(unit: Unit, lanes: readonly LaneKey[]): Promise<void> {
  await unit.write(
    `INSERT INTO webhook_lanes AS l (webhook_id, lane, next_at, claim, version)
     SELECT webhook_id, lane, ${NOW}, 0, 1
     FROM jsonb_to_recordset($1::text::jsonb) AS d (webhook_id text, lane text)
     WHERE EXISTS (SELECT 1 FROM webhooks w WHERE w.id = d.webhook_id)
     ON CONFLICT (webhook_id, lane)
     DO UPDATE SET next_at = coalesce(l.next_at, excluded.next_at), version = l.version + 1`,
    JSON.stringify(lanes.map(({ webhook_id, lane }) => ({ webhook_id, lane }))),
  );
}

interface Finished {
  readonly lane: Lane;
  readonly deliveries: readonly AttemptedDelivery[];
  readonly retryMs: number | null;
}

/**
 * Lanes are locked in the order of `lanesOf`. The version is compared in the locked row itself: what
 * another node queues meanwhile is noticed, even if the statement does not see the delivery yet.
 */
const finishAttempts: Batch<Finished, boolean> = {
  sql: `WITH finished AS (
      SELECT * FROM jsonb_to_recordset($1::text::jsonb) AS f (place integer, webhook_id text,
        lane text, claim bigint, version bigint, retry_ms bigint, deliveries jsonb)
    ), held AS (
      SELECT f.place, l.webhook_id, l.lane, l.version > f.version AS has_new, f.retry_ms, f.deliveries
      FROM finished f JOIN webhook_lanes l USING (webhook_id, lane, claim)
      ORDER BY l.webhook_id, l.lane FOR UPDATE OF l
    ), ended AS (
      SELECT e.* FROM held CROSS JOIN LATERAL jsonb_to_recordset(held.deliveries)
        AS e (id bigint, status text, attempts integer, history text)
    ), recorded AS (
      UPDATE deliveries d SET status = e.status, attempts = e.attempts, history = e.history
      FROM ended e WHERE d.id = e.id
    ), rescheduled AS (
      UPDATE webhook_lanes l SET next_at = coalesce(${NOW} + held.retry_ms,
        CASE WHEN held.has_new OR EXISTS (SELECT 1 FROM deliveries d
          WHERE d.webhook_id = l.webhook_id AND d.lane = l.lane AND d.status = 'pending'
            AND d.id NOT IN (SELECT id FROM ended WHERE status <> 'pending')) THEN ${NOW} END)
      FROM held WHERE l.webhook_id = held.webhook_id AND l.lane = held.lane
    ) SELECT place FROM held`,
  writes: true,
  values: (calls) => [
    JSON.stringify(
      calls.map(({ lane, deliveries, retryMs }, place) => ({
        ...lane,
        place,
        retry_ms: retryMs,
        deliveries: deliveries.map(({ id, status, attempts: count, history }) => ({
          id,
          status,
          attempts: count,
          history: JSON.stringify(history),
        })),
      })),
    ),
  ],
  results: (rows: readonly { place: number }[], calls) => {
    const held = new Set(rows.map(({ place }) => place));
    return calls.map((_, place) => held.has(place));
  },
};

const attempts: Methods<"claimLanes" | "finishAttempts" | "parkLane"> = {
  claimLanes: (unit, webhookId, claimMs, limit) =>
    unit.write<Lane>(
      `UPDATE webhook_lanes SET next_at = ${NOW} + $2, claim = claim + 1
       WHERE webhook_id = $1 AND lane IN (SELECT lane FROM webhook_lanes
         WHERE webhook_id = $1 AND next_at <= ${FIXED_NOW} ORDER BY next_at LIMIT $3
         FOR UPDATE SKIP LOCKED)
       RETURNING webhook_id, lane, claim, version`,
      webhookId,
      claimMs,
      limit,
    ),
  finishAttempts: (unit, lane, deliveries, retryMs) =>
    unit.together(finishAttempts, { lane, deliveries, retryMs }),
  parkLane: async (unit, { webhook_id, lane, claim, version }) => {
    await unit.write(
      `UPDATE webhook_lanes SET next_at = CASE WHEN version > $4 THEN ${NOW} END
       WHERE webhook_id = $1 AND lane = $2 AND claim = $3`,
      webhook_id,
      lane,
      claim,
      version,
    );
  },
};

export const webhookWrites: Methods<keyof WebhookWrites> = {
  ...webhookSettings,
  ...deliveryQueue,
  ...pruning,
  ...attempts,
};
