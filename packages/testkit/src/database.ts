import { Database } from "bun:sqlite";
import { join } from "node:path";

/** Opens the database of a server on SQLite, and waits while the server writes. */
export function databaseOf({ dataDir }: { readonly dataDir: string }): Database {
  const db = new Database(join(dataDir, "parley.db"), { readwrite: true });
  db.run("PRAGMA busy_timeout = 60000");
  return db;
}

/** The entries of the audit log that the work adds, such as a command, which does not print them. */
export async function entriesAddedBy(
  server: { readonly dataDir: string },
  work: () => Promise<unknown>,
): Promise<Record<string, unknown>[]> {
  using db = databaseOf(server);
  const { last } = db.query("SELECT coalesce(max(id), 0) AS last FROM audit_log").get() as {
    last: number;
  };
  await work();
  const rows = db
    .query<{ action: string; account: string | null; details: string }, [number]>(
      "SELECT action, account, details FROM audit_log WHERE id > ? ORDER BY id",
    )
    .all(last);
  return rows.map(({ action, account, details }) => ({
    event: action,
    account,
    ...JSON.parse(details),
  }));
}
