import type { Database } from "bun:sqlite";
import type { Change } from "../../changes/change.ts";
import { type ChangeLog, type Cursor, type EntryRow, encodeChanges, entryOf } from "../changes.ts";

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
