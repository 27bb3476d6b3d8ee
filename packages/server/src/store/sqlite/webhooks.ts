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
import type { Lane, LaneKey, WebhookReads, WebhookWrites } from "../webhooks.ts";
import type { Connection } from "./connection.ts";

export function webhookReads(db: Connection): WebhookReads {
  const all = db.query<WebhookRow>(`SELECT ${WEBHOOK} FROM webhooks ORDER BY created_at, id`);
  const byId = db.query<WebhookRow>(`SELECT ${WEBHOOK} FROM webhooks WHERE id = ?`);
  const delivery = db.query<DeliveryRow>(`SELECT ${DELIVERY} FROM deliveries WHERE id = ?`);
  const next = db.query<DeliveryRow>(
    `SELECT ${DELIVERY} FROM deliveries
     WHERE webhook_id = ? AND lane = ? AND status = 'pending' ORDER BY id LIMIT ?`,
  );
  const due = db.query<{ id: string }>(
    `SELECT id FROM webhooks WHERE EXISTS (
       SELECT 1 FROM webhook_lanes l WHERE l.webhook_id = webhooks.id AND l.next_at <= ?)`,
  );
  const pending = db.query<{ count: number }>(
    `SELECT count(*) AS count FROM (SELECT 1 FROM deliveries WHERE status = 'pending' LIMIT ?)`,
  );
  return {
    webhooks: () => all.all().map(toWebhook),
    webhook: (id) => {
      const row = byId.get(id);
      return row && toWebhook(row);
    },
    deliveries: (query) => {
      const { sql, values } = deliveryQuery(query);
      return db
        .query<DeliveryRow>(sql)
        .all(...values)
        .map(toDelivery);
    },
    delivery: (id) => {
      const row = delivery.get(id);
      return row && toDelivery(row);
    },
    nextDeliveries: ({ webhook_id, lane }, limit) =>
      next.all(webhook_id, lane, limit).map(toDelivery),
    dueWebhooks: () => due.all(Date.now()).map(({ id }) => id),
    pendingDeliveries: (most) => pending.get(most)?.count ?? 0,
  };
}

export const webhookWrites = (db: Connection): WebhookWrites => ({
  ...webhookSettings(db),
  ...deliveryQueue(db),
  ...pruning(db),
  ...attempts(db),
});

function webhookSettings(db: Connection): Pick<WebhookWrites, WebhookSettings> {
  const insert = db.change(INSERT_WEBHOOK);
  const disable = db.change(DISABLE_WEBHOOK);
  const reseal = db.change("UPDATE webhooks SET secret = ?3 WHERE id = ?1 AND secret = ?2");
  const remove = db.change("DELETE FROM webhooks WHERE id = ?");
  return {
    insertWebhook: ({ events, ...webhook }) => {
      const { id, url, secret, chat, creator, since, created_at, name } = webhook;
      const names = JSON.stringify(events);
      insert.run(id, url, secret, names, chat, creator, since, created_at, name);
    },
    setWebhook: (id, fields) => {
      for (const [column, value] of fieldColumns(fields)) {
        db.change(`UPDATE webhooks SET ${column} = ? WHERE id = ?`).run(value, id);
      }
    },
    disableWebhook: ({ id, resumed_at }, reason) => disable.run(reason, id, resumed_at).changes > 0,
    resealWebhook: (id, from, to) => void reseal.run(id, from, to),
    deleteWebhook: (id) => remove.run(id).changes > 0,
  };
}

function deliveryQueue(db: Connection): Pick<WebhookWrites, DeliveryQueue> {
  const insert = db.change(
    `INSERT INTO deliveries
       (webhook_id, message_id, lane, event, change, status, created_at, queued_at, attempts, history)
     SELECT ?1, ?2, ?3, ?4, ?5, 'pending', ?6, ?6, 0, '[]'
     WHERE EXISTS (SELECT 1 FROM webhooks WHERE id = ?1)
     ON CONFLICT (webhook_id, message_id) DO NOTHING`,
  );
  const wake = db.change(
    `INSERT INTO webhook_lanes (webhook_id, lane, next_at, claim, version)
     SELECT ?1, ?2, ?3, 0, 1 WHERE EXISTS (SELECT 1 FROM webhooks WHERE id = ?1)
     ON CONFLICT (webhook_id, lane)
     DO UPDATE SET next_at = coalesce(next_at, excluded.next_at), version = version + 1`,
  );
  const requeue = db.change(REQUEUE_DELIVERY);
  const resume = db.change(
    `UPDATE webhook_lanes SET version = version + 1,
       next_at = CASE WHEN next_at <= ?2 + ?3 THEN next_at ELSE ?2 END
     WHERE webhook_id = ?1 AND EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook_id = ?1
       AND d.lane = webhook_lanes.lane AND d.status = 'pending')`,
  );
  const restartRetries = db.change("UPDATE webhooks SET resumed_at = ? WHERE id = ?");
  return {
    queueDeliveries: (deliveries) => {
      for (const { webhook_id, message_id, lane, event, change, at } of deliveries) {
        insert.run(webhook_id, message_id, lane, event, JSON.stringify(change), at);
      }
      for (const { webhook_id, lane } of lanesOf(deliveries)) {
        wake.run(webhook_id, lane, Date.now());
      }
    },
    requeueDelivery: ({ id, webhook_id, lane }, at) => {
      requeue.run(at, id);
      wake.run(webhook_id, lane, Date.now());
    },
    resumeLanes: (webhookId, claimMs, at) => {
      resume.run(webhookId, Date.now(), claimMs);
      restartRetries.run(at, webhookId);
    },
  };
}

function pruning(db: Connection): Pick<WebhookWrites, WebhookPruning> {
  const prune = db.change(PRUNE_DELIVERIES);
  const removeLanes = db.change(
    `DELETE FROM webhook_lanes WHERE (webhook_id, lane) IN (${ORPHANED_LANES})`,
  );
  const removeDeliveries = db.change(`DELETE FROM deliveries WHERE id IN (${ORPHANED_DELIVERIES})`);
  return {
    pruneDeliveries: ({ webhookId, before, kept, most }) =>
      prune.run(webhookId, before, kept, most).changes,
    pruneDeletedWebhooks: (most) =>
      removeLanes.run(most).changes + removeDeliveries.run(most).changes,
  };
}

function attempts(
  db: Connection,
): Pick<WebhookWrites, "claimLanes" | "finishAttempts" | "parkLane"> {
  const claim = db.change<Lane>(
    `UPDATE webhook_lanes SET next_at = ?3, claim = claim + 1
     WHERE webhook_id = ?1 AND lane IN (SELECT lane FROM webhook_lanes
       WHERE webhook_id = ?1 AND next_at <= ?2 ORDER BY next_at LIMIT ?4)
     RETURNING webhook_id, lane, claim, version`,
  );
  const finish = db.change(
    "UPDATE deliveries SET status = ?2, attempts = ?3, history = ?4 WHERE id = ?1",
  );
  const held = db.query<object>(
    "SELECT 1 FROM webhook_lanes WHERE webhook_id = ? AND lane = ? AND claim = ?",
  );
  const reschedule = db.change(
    "UPDATE webhook_lanes SET next_at = ?3 WHERE webhook_id = ?1 AND lane = ?2",
  );
  const waiting = db.query<object>(
    "SELECT 1 FROM deliveries WHERE webhook_id = ? AND lane = ? AND status = 'pending' LIMIT 1",
  );
  const isHeld = (claimed: Lane) =>
    held.get(claimed.webhook_id, claimed.lane, claimed.claim) !== null;
  const hasMore = ({ webhook_id, lane }: LaneKey) => waiting.get(webhook_id, lane) !== null;
  const park = db.change(
    `UPDATE webhook_lanes SET next_at = CASE WHEN version > ?4 THEN ?5 END
     WHERE webhook_id = ?1 AND lane = ?2 AND claim = ?3`,
  );
  return {
    claimLanes: (webhookId, claimMs, limit) => {
      const now = Date.now();
      return claim.all(webhookId, now, now + claimMs, limit);
    },
    finishAttempts: (lane, deliveries, retryMs) => {
      if (!isHeld(lane)) return false;
      for (const { id, status, attempts: count, history } of deliveries) {
        finish.run(id, status, count, JSON.stringify(history));
      }
      const now = Date.now();
      const nextAt = retryMs === null ? (hasMore(lane) ? now : null) : now + retryMs;
      reschedule.run(lane.webhook_id, lane.lane, nextAt);
      return true;
    },
    parkLane: (claimed) => {
      const { webhook_id, lane, version } = claimed;
      park.run(webhook_id, lane, claimed.claim, version, Date.now());
    },
  };
}
