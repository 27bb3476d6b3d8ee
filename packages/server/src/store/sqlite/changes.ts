import type { Database } from "bun:sqlite";
import type { Change } from "../../changes/change.ts";
import type { ChangeLog, Cursor, SubscriptionWrites } from "../changes.ts";
import { decodeChanges, encodeChanges } from "../shared/change-log.ts";
import type { Connection } from "./connection.ts";

/** Returns a function that appends the durable changes of a transaction's units to the log. */
export function changeWriter(db: Database, node: string) {
  const insert = db.query<never, [number, string, string]>(
    "INSERT INTO changes (at, node, body) VALUES (?, ?, ?)",
  );
  return (units: readonly { changes: readonly Change[] }[]): void => {
    const body = encodeChanges(units);
    if (body !== null) insert.run(Date.now(), node, body);
  };
}

/** Reads the log; `settled` resolves once everything that is visible is on disk. */
export function changeLog(db: Database, settled: () => Promise<void> | undefined): ChangeLog {
  const entries = db.query<{ id: number; node: string; body: string }, [Cursor, number]>(
    "SELECT id, node, body FROM changes WHERE id > ? ORDER BY id LIMIT ?",
  );
  const last = db.query<{ id: number }, []>("SELECT coalesce(max(id), 0) AS id FROM changes");
  const pruned = db.query<{ up_to: number }, []>("SELECT up_to FROM changes_pruned");
  return {
    head: async () => {
      const head = last.get()?.id ?? 0;
      await settled();
      return head;
    },
    read: async (after, limit) => {
      const rows = entries.all(after, limit);
      const isComplete = after >= (pruned.get()?.up_to ?? 0);
      await settled();
      if (!isComplete) return null;
      return rows.map(({ id, node, body }) => ({ cursor: id, node, changes: decodeChanges(body) }));
    },
  };
}

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
