import type { Batch } from "../postgres/transaction.ts";
import { type Methods, prepared } from "../postgres/unit.ts";
import { NOW, sql } from "../sql.ts";
import {
  type AttemptedDelivery,
  DELIVERY,
  type DeliveryRecord,
  type Lane,
  readDelivery,
} from "../webhooks.ts";

/** Units that look after different lanes at the same time share their statements. */
export const hotWebhookReads: Methods<"nextDeliveries"> = {
  nextDeliveries: (unit, { webhook_id, lane }, limit) =>
    unit.together(nextDeliveries, { of_webhook: webhook_id, of_lane: lane, most: limit }),
};

export const hotWebhookWrites: Methods<"finishAttempts"> = {
  finishAttempts: (unit, lane, deliveries, retryMs) =>
    unit.together(finishAttempts, { lane, deliveries, retryMs }),
};

interface NextDeliveries {
  readonly of_webhook: string;
  readonly of_lane: string;
  readonly most: number;
}

const nextDeliveries: Batch<NextDeliveries, DeliveryRecord[]> = {
  statement: prepared(sql`
    SELECT place, ${DELIVERY} FROM jsonb_to_recordset($1::text::jsonb)
      AS l (place integer, of_webhook text, of_lane text, most integer)
    CROSS JOIN LATERAL (SELECT ${DELIVERY} FROM deliveries
      WHERE webhook_id = of_webhook AND lane = of_lane AND status = 'pending'
      ORDER BY id LIMIT most) next
    ORDER BY place, id`),
  writes: false,
  values: (calls) => [JSON.stringify(calls.map((call, place) => ({ ...call, place })))],
  results: (rows: readonly { place: number }[], calls) => {
    const found: DeliveryRecord[][] = calls.map(() => []);
    for (const { place, ...row } of rows) found[place]?.push(readDelivery(row));
    return found;
  },
};

interface Finished {
  readonly lane: Lane;
  readonly deliveries: readonly AttemptedDelivery[];
  readonly retryMs: number | null;
}

/**
 * Lanes are locked in one order. The version is compared in the locked row itself: what
 * another node queues meanwhile is noticed, even if the statement does not see the delivery yet.
 */
const finishAttempts: Batch<Finished, boolean> = {
  statement: prepared(sql`
    WITH finished AS (
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
    ) SELECT place FROM held`),
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
