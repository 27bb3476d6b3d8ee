import {
  DELIVERY,
  type DeliveryRow,
  deliveryQuery,
  fieldColumns,
  lanesOf,
  toDelivery,
  toWebhook,
  WEBHOOK,
  type WebhookRow,
} from "../shared/webhooks.ts";
import type { Lane, LaneKey, WebhookReads, WebhookWrites } from "../webhooks.ts";
import { type Methods, NOW, type Unit } from "./unit.ts";

const one = (row: DeliveryRow | null) => row && toDelivery(row);

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
    const { sql, values } = deliveryQuery(query, (number) => `$${number}`);
    return (await unit.all<DeliveryRow>(sql, ...values)).map(toDelivery);
  },
  delivery: async (unit, id) =>
    one(await unit.get<DeliveryRow>(`SELECT ${DELIVERY} FROM deliveries WHERE id = $1`, id)),
  nextDelivery: async (unit, { webhook_id, lane }) =>
    one(
      await unit.get<DeliveryRow>(
        `SELECT ${DELIVERY} FROM deliveries
         WHERE webhook_id = $1 AND lane = $2 AND status = 'pending' ORDER BY id LIMIT 1`,
        webhook_id,
        lane,
      ),
    ),
  dueWebhooks: async (unit) => {
    const rows = await unit.all<LaneKey>(
      `SELECT DISTINCT webhook_id FROM webhook_lanes WHERE next_at <= ${NOW}`,
    );
    return rows.map(({ webhook_id }) => webhook_id);
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

type Settings = "insertWebhook" | "setWebhook" | "resealWebhook" | "deleteWebhook";

const webhookSettings: Methods<Settings> = {
  insertWebhook: async (unit, { id, url, secret, events, chat, creator, since, created_at }) => {
    await unit.change(
      `INSERT INTO webhooks (id, url, secret, events, chat, creator, since, created_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
      id,
      url,
      secret,
      JSON.stringify(events),
      chat,
      creator,
      since,
      created_at,
    );
  },
  setWebhook: async (unit, id, fields) => {
    for (const [column, value] of fieldColumns(fields)) {
      await unit.change(`UPDATE webhooks SET ${column} = $1 WHERE id = $2`, value, id);
    }
  },
  resealWebhook: async (unit, id, from, to) => {
    await unit.change(
      "UPDATE webhooks SET secret = $3 WHERE id = $1 AND secret = $2",
      id,
      from,
      to,
    );
  },
  deleteWebhook: async (unit, id) => {
    // In the order in which other units lock the rows.
    await unit.change("DELETE FROM webhook_lanes WHERE webhook_id = $1", id);
    await unit.change("DELETE FROM deliveries WHERE webhook_id = $1", id);
    const { count } = await unit.change("DELETE FROM webhooks WHERE id = $1", id);
    return count > 0;
  },
};

type Queue = "queueDeliveries" | "requeueDelivery" | "resumeLanes" | "pruneDeliveries";

const deliveryQueue: Methods<Queue> = {
  queueDeliveries: async (unit, deliveries) => {
    if (deliveries.length === 0) return;
    await unit.change(
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
    await unit.change(
      "UPDATE deliveries SET status = 'pending', queued_at = $1, attempts = 0 WHERE id = $2",
      at,
      delivery.id,
    );
    await wakeLanes(unit, [delivery]);
  },
  resumeLanes: async (unit, webhookId) => {
    await unit.change(
      `UPDATE webhook_lanes l SET next_at = ${NOW}, version = version + 1
       WHERE webhook_id = $1 AND EXISTS (SELECT 1 FROM deliveries d
         WHERE d.webhook_id = $1 AND d.lane = l.lane AND d.status = 'pending')`,
      webhookId,
    );
  },
  pruneDeliveries: async (unit, { webhookId, before, kept, most }) => {
    const { count } = await unit.change(
      `DELETE FROM deliveries WHERE id IN (
         SELECT id FROM deliveries WHERE webhook_id = $1 AND status <> 'pending'
           AND (queued_at < $2 OR id <= coalesce((SELECT id FROM deliveries
             WHERE webhook_id = $1 AND status <> 'pending' ORDER BY id DESC LIMIT 1 OFFSET $3), 0))
         ORDER BY id LIMIT $4)`,
      webhookId,
      before,
      kept,
      most,
    );
    return count;
  },
};

/** Makes lanes due that have nothing to send so far. */
async function wakeLanes(unit: Unit, lanes: readonly LaneKey[]): Promise<void> {
  await unit.change(
    `INSERT INTO webhook_lanes AS l (webhook_id, lane, next_at, claim, version)
     SELECT webhook_id, lane, ${NOW}, 0, 1
     FROM jsonb_to_recordset($1::text::jsonb) AS d (webhook_id text, lane text)
     WHERE EXISTS (SELECT 1 FROM webhooks w WHERE w.id = d.webhook_id)
     ON CONFLICT (webhook_id, lane)
     DO UPDATE SET next_at = coalesce(l.next_at, excluded.next_at), version = l.version + 1`,
    JSON.stringify(lanes.map(({ webhook_id, lane }) => ({ webhook_id, lane }))),
  );
}

const attempts: Methods<"claimLanes" | "finishAttempt" | "parkLane"> = {
  claimLanes: (unit, webhookId, claimMs, limit) =>
    unit.change<Lane>(
      `UPDATE webhook_lanes SET next_at = ${NOW} + $2, claim = claim + 1
       WHERE webhook_id = $1 AND lane IN (SELECT lane FROM webhook_lanes
         WHERE webhook_id = $1 AND next_at <= ${NOW} ORDER BY next_at LIMIT $3
         FOR UPDATE SKIP LOCKED)
       RETURNING webhook_id, lane, claim, version`,
      webhookId,
      claimMs,
      limit,
    ),
  finishAttempt: async (unit, lane, delivery, retryMs) => {
    const { webhook_id, claim, version } = lane;
    const { id, status, attempts: count, history } = delivery;
    // The version is compared in the row itself: what another node queues meanwhile is noticed, even
    // if this statement does not see the delivery yet.
    const { count: held } = await unit.change(
      `UPDATE webhook_lanes l SET next_at = coalesce(${NOW} + $4, CASE WHEN version > $5 OR EXISTS (
           SELECT 1 FROM deliveries d WHERE d.webhook_id = $1 AND d.lane = l.lane
             AND d.status = 'pending' AND d.id <> $6) THEN ${NOW} END)
       WHERE webhook_id = $1 AND lane = $2 AND claim = $3`,
      webhook_id,
      lane.lane,
      claim,
      retryMs,
      version,
      id,
    );
    if (held === 0) return false;
    await unit.change(
      "UPDATE deliveries SET status = $2, attempts = $3, history = $4 WHERE id = $1",
      id,
      status,
      count,
      JSON.stringify(history),
    );
    return true;
  },
  parkLane: async (unit, { webhook_id, lane, claim, version }) => {
    await unit.change(
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
  ...attempts,
};
