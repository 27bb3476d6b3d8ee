import type { LoggedChange } from "../../changes/change.ts";
import type {
  Attempt,
  DeliveryQuery,
  DeliveryRecord,
  NewDelivery,
  WebhookFields,
  WebhookRecord,
} from "../webhooks.ts";
import { bindings } from "./bindings.ts";

/** The parts of the writes, which each store implements one by one. */
export type WebhookSettings =
  | "insertWebhook"
  | "setWebhook"
  | "disableWebhook"
  | "resealWebhook"
  | "deleteWebhook";
export type DeliveryQueue = "queueDeliveries" | "requeueDelivery" | "resumeLanes";
export type WebhookPruning = "pruneDeliveries" | "pruneDeletedWebhooks";

export const WEBHOOK =
  "id, name, url, secret, events, chat, creator, disabled, since, resumed_at, created_at";
export const DELIVERY =
  "id, webhook_id, message_id, lane, event, change, status, created_at, queued_at, attempts, history";

export const INSERT_WEBHOOK = `INSERT INTO webhooks
    (id, url, secret, events, chat, creator, since, created_at, name)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`;

export const DISABLE_WEBHOOK =
  "UPDATE webhooks SET disabled = $1 WHERE id = $2 AND disabled IS NULL AND resumed_at = $3";

export const REQUEUE_DELIVERY =
  "UPDATE deliveries SET status = 'pending', queued_at = $1, attempts = 0 WHERE id = $2";

export const PRUNE_DELIVERIES = `DELETE FROM deliveries WHERE id IN (
  SELECT id FROM deliveries WHERE webhook_id = $1 AND status <> 'pending'
    AND (queued_at < $2 OR id <= coalesce((SELECT id FROM deliveries
      WHERE webhook_id = $1 AND status <> 'pending' ORDER BY id DESC LIMIT 1 OFFSET $3), 0))
  ORDER BY id LIMIT $4)`;

/**
 * Selects deleted webhooks that have rows in a table, at least one if there is any. It looks only at the
 * first row after those of each webhook, however many rows there are.
 */
const deletedWebhooks = (table: "deliveries" | "webhook_lanes") =>
  `SELECT following.id FROM (
     SELECT (SELECT webhook_id FROM ${table} WHERE webhook_id > known.id
       ORDER BY webhook_id LIMIT 1) AS id
     FROM (SELECT id FROM webhooks UNION ALL SELECT '') known) following
   WHERE following.id IS NOT NULL
     AND NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.id = following.id)`;

/** Some lanes of deleted webhooks. */
export const ORPHANED_LANES = `SELECT webhook_id, lane FROM webhook_lanes
  WHERE webhook_id IN (${deletedWebhooks("webhook_lanes")}) LIMIT $1`;

/** Some deliveries of deleted webhooks. */
export const ORPHANED_DELIVERIES = `SELECT id FROM deliveries
  WHERE webhook_id IN (${deletedWebhooks("deliveries")}) LIMIT $1`;

export type WebhookRow = Omit<WebhookRecord, "events"> & { events: string };
export type DeliveryRow = Omit<DeliveryRecord, "change" | "history"> & {
  change: string;
  history: string;
};

export const toWebhook = ({ events, ...row }: WebhookRow): WebhookRecord => ({
  ...row,
  events: JSON.parse(events) as string[],
});

export const toDelivery = ({ change, history, ...row }: DeliveryRow): DeliveryRecord => ({
  ...row,
  change: JSON.parse(change) as LoggedChange,
  history: JSON.parse(history) as Attempt[],
});

/** The columns and values of the given fields. */
export const fieldColumns = ({ events, ...fields }: WebhookFields) =>
  Object.entries({ ...fields, events: events && JSON.stringify(events) }).filter(
    (entry): entry is [string, string | number | null] => entry[1] !== undefined,
  );

/** The lanes of new deliveries, in one order for all units, so that these do not block each other. */
export function lanesOf(deliveries: readonly NewDelivery[]) {
  const lanes = new Map(
    deliveries.map(({ webhook_id, lane }) => [`${webhook_id} ${lane}`, { webhook_id, lane }]),
  );
  return [...lanes.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, it]) => it);
}

/** The statement of a query and its values. Only given filters are in it, so that it uses an index. */
export function deliveryQuery({ webhookId, status, before, limit }: DeliveryQuery) {
  const { values, bind } = bindings();
  const filters = [`webhook_id = ${bind(webhookId)}`];
  if (status !== undefined) filters.push(`status = ${bind(status)}`);
  if (before !== undefined) filters.push(`id < ${bind(before)}`);
  const sql = `SELECT ${DELIVERY} FROM deliveries
    WHERE ${filters.join(" AND ")} ORDER BY id DESC LIMIT ${bind(limit)}`;
  return { sql, values };
}
