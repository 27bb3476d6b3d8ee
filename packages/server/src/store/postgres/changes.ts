import { type Methods, NOW } from "./unit.ts";

export const subscriptionWrites: Methods<
  "claimSubscription" | "saveSubscription" | "deleteSubscription"
> = {
  claimSubscription: async (unit, name, node, leaseMs, from) => {
    const [row] = await unit.change<{ cursor: number }>(
      `INSERT INTO subscriptions AS s (name, cursor, node, leased_until)
       VALUES ($1, $2, $3, ${NOW} + $4::bigint)
       ON CONFLICT (name) DO UPDATE SET node = excluded.node, leased_until = excluded.leased_until
         WHERE s.node = excluded.node OR s.leased_until <= ${NOW}
       RETURNING cursor`,
      name,
      from,
      node,
      leaseMs,
    );
    return row?.cursor ?? null;
  },
  saveSubscription: async (unit, name, node, cursor, leaseMs) => {
    const saved = await unit.change(
      `UPDATE subscriptions SET cursor = $1, leased_until = ${NOW} + $2::bigint
       WHERE name = $3 AND node = $4`,
      cursor,
      leaseMs,
      name,
      node,
    );
    return saved.count > 0;
  },
  deleteSubscription: async (unit, name) => {
    await unit.change("DELETE FROM subscriptions WHERE name = $1", name);
  },
};
