import { Database } from "bun:sqlite";
import { join } from "node:path";

/** Opens the database of a server on SQLite, and waits while the server writes. */
export function databaseOf({ dataDir }: { readonly dataDir: string }): Database {
  const db = new Database(join(dataDir, "parley.db"), { readwrite: true });
  db.run("PRAGMA busy_timeout = 60000");
  return db;
}
