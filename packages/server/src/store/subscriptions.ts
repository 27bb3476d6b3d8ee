import type { Cursor } from "./changes.ts";
import { hasChanged, NOW, type Sql } from "./sql.ts";

/** Named subscriptions keep their position in the change log across restarts and nodes. */
export const subscriptionWrites = {
  /**
   * Leases the subscription to a node and returns its cursor; null while another node holds the
   * lease or is saving the cursor. A new subscription begins at `from`.
   */
  async claimSubscription(
    db: Sql,
    name: string,
    node: string,
    leaseMs: number,
    from: Cursor,
  ): Promise<Cursor | null> {
    // Does not wait: a node that is paused while it saves the cursor must not delay the others.
    const [claimed] = await db.changed<{ cursor: Cursor }>(
      `UPDATE subscriptions SET node = $2, leased_until = ${NOW} + $3::bigint
       WHERE name = (SELECT name FROM subscriptions
         WHERE name = $1 AND (node = $2 OR leased_until <= ${NOW}) FOR UPDATE SKIP LOCKED)
       RETURNING cursor`,
      [name, node, leaseMs],
    );
    if (claimed) return claimed.cursor;
    const [begun] = await db.changed<{ cursor: Cursor }>(
      `INSERT INTO subscriptions (name, cursor, node, leased_until)
       SELECT $1, $2, $3, ${NOW} + $4::bigint
       WHERE NOT EXISTS (SELECT 1 FROM subscriptions WHERE name = $1)
       ON CONFLICT (name) DO NOTHING RETURNING cursor`,
      [name, from, node, leaseMs],
    );
    return begun?.cursor ?? null;
  },
  /**
   * Saves the cursor and renews the lease; `leaseMs` 0 releases it. False when another node has
   * taken over or the subscription was deleted.
   */
  saveSubscription: (db: Sql, name: string, node: string, cursor: Cursor, leaseMs: number) =>
    hasChanged(
      db,
      `UPDATE subscriptions SET cursor = $1, leased_until = ${NOW} + $2::bigint
       WHERE name = $3 AND node = $4`,
      [cursor, leaseMs, name, node],
    ),
  /** Begins a subscription at a position, or moves one that is behind it forward. The lease stays. */
  async advanceSubscription(db: Sql, name: string, to: Cursor): Promise<void> {
    await db.change(
      `INSERT INTO subscriptions AS s (name, cursor, node, leased_until) VALUES ($1, $2, '', 0)
       ON CONFLICT (name) DO UPDATE SET cursor = greatest(s.cursor, excluded.cursor)`,
      [name, to],
    );
  },
  /** Does nothing if another node has taken over. */
  async deleteSubscription(db: Sql, name: string, node: string): Promise<void> {
    await db.change("DELETE FROM subscriptions WHERE name = $1 AND node = $2", [name, node]);
  },
};
