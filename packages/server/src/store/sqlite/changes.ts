import type { SubscriptionWrites } from "../changes.ts";
import type { Connection } from "./connection.ts";

export function subscriptionWrites(db: Connection): SubscriptionWrites {
  const claim = db.change<{ cursor: number }>(
    `INSERT INTO subscriptions (name, cursor, node, leased_until) VALUES (?1, ?2, ?3, ?4 + ?5)
     ON CONFLICT (name) DO UPDATE SET node = excluded.node, leased_until = excluded.leased_until
       WHERE node = excluded.node OR leased_until <= ?4
     RETURNING cursor`,
  );
  const save = db.change(
    "UPDATE subscriptions SET cursor = ?, leased_until = ? WHERE name = ? AND node = ?",
  );
  const remove = db.change("DELETE FROM subscriptions WHERE name = ?");
  return {
    claimSubscription: (name, node, leaseMs, from) =>
      claim.get(name, from, node, Date.now(), leaseMs)?.cursor ?? null,
    saveSubscription: (name, node, cursor, leaseMs) =>
      save.run(cursor, Date.now() + leaseMs, name, node).changes > 0,
    deleteSubscription: (name) => void remove.run(name),
  };
}
