import type { Database } from "bun:sqlite";
import type { Change } from "../../changes/change.ts";
import type { ChangeLog, Cursor, SubscriptionWrites } from "../changes.ts";
import {
  type EntryRow,
  encodeChanges,
  entryOf,
  type LogLimits,
  pruneUpTo,
  sampleIds,
} from "../shared/changes.ts";
import type { Connection } from "./connection.ts";

/** Returns a function that appends the durable changes of a transaction to the log. */
export function changeWriter(db: Database, node: string) {
  const insert = db.query<never, [number, string, string]>(
    "INSERT INTO changes (at, node, body) VALUES (?, ?, ?)",
  );
  return (changes: readonly Change[]): void => {
    const body = encodeChanges(changes);
    if (body !== null) insert.run(Date.now(), node, body);
  };
}

/** Reads the log; `settled` resolves once everything that is visible is on disk. */
export function changeLog(db: Database, settled: () => Promise<void> | undefined): ChangeLog {
  const entries = db.query<EntryRow, [Cursor, number, string]>(
    `SELECT id, node, CASE WHEN node = ?3 THEN '[]' ELSE body END AS body
     FROM changes WHERE id > ?1 ORDER BY id LIMIT ?2`,
  );
  const last = db.query<{ id: number }, []>("SELECT coalesce(max(id), 0) AS id FROM changes");
  const pruned = db.query<{ up_to: number }, []>("SELECT up_to FROM changes_pruned");
  return {
    head: async () => {
      const head = last.get()?.id ?? 0;
      await settled();
      return head;
    },
    read: async (after, limit, skippedNode = "") => {
      const rows = entries.all(after, limit, skippedNode);
      const isComplete = after >= (pruned.get()?.up_to ?? 0);
      await settled();
      if (!isComplete) return null;
      return rows.map(entryOf);
    },
  };
}

/** Few at a time, because other writers wait meanwhile. */
const PRUNED_AT_ONCE = 200;

/** Returns a function that prunes some of the oldest entries, in a unit; true when more are left. */
export function changePruner(db: Connection, limits: LogLimits): () => boolean {
  const oldest = db.query<{ id: number; at: number }>(
    `SELECT id, at FROM changes ORDER BY id LIMIT ${PRUNED_AT_ONCE}`,
  );
  const last = db.query<{ id: number }>("SELECT max(id) AS id FROM changes");
  const average = db.query<{ bytes: number | null }>(
    `SELECT avg(octet_length(body)) AS bytes FROM changes
     WHERE id IN (SELECT value FROM json_each(?))`,
  );
  const remove = db.change("DELETE FROM changes WHERE id <= ?");
  const setPruned = db.change(
    `INSERT INTO changes_pruned (one, up_to) VALUES (1, ?)
     ON CONFLICT (one) DO UPDATE SET up_to = excluded.up_to`,
  );
  return () => {
    const rows = oldest.all();
    const newest = last.get()?.id ?? 0;
    const sample = JSON.stringify(sampleIds(rows[0]?.id ?? 0, newest));
    const averageBytes = average.get(sample)?.bytes ?? 0;
    const size = { oldest: rows, last: newest, averageBytes, now: Date.now() };
    const upTo = pruneUpTo(size, limits);
    if (upTo === null) return false;
    remove.run(upTo);
    setPruned.run(upTo);
    return upTo === rows.at(-1)?.id;
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
  const advance = db.change(
    `INSERT INTO subscriptions (name, cursor, node, leased_until) VALUES (?, ?, '', 0)
     ON CONFLICT (name) DO UPDATE SET cursor = max(cursor, excluded.cursor)`,
  );
  const remove = db.change("DELETE FROM subscriptions WHERE name = ? AND node = ?");
  return {
    claimSubscription: (name, node, leaseMs, from) =>
      claim.get(name, from, node, Date.now(), leaseMs)?.cursor ?? null,
    saveSubscription: (name, node, cursor, leaseMs) =>
      save.run(cursor, Date.now() + leaseMs, name, node).changes > 0,
    advanceSubscription: (name, to) => void advance.run(name, to),
    deleteSubscription: (name, node) => void remove.run(name, node),
  };
}
