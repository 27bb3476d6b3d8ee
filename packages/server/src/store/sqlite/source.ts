import type { Database, SQLQueryBindings } from "bun:sqlite";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { lockFile } from "../data-folder.ts";
import type { Range, Row, Table, TransferSource } from "../transfer.ts";
import { openForReading } from "./connection.ts";
import { NEWEST_SCHEMA } from "./migrations.ts";

/**
 * Tables that are not copied: the queue of the search index, names that the target derives from the
 * accounts, and the change log with its subscriptions. Cursors mean nothing in another store, and
 * every client fetches what it missed after a move.
 */
const LEFT_OUT = ["search_changes", "account_names", "changes", "changes_pruned", "subscriptions"];
/** For the same reason: the positions of webhooks in the change log. */
const LEFT_OUT_COLUMNS = ["webhooks.since"];

/** Opens the data of an installation for copying. Read-only: a server may use it at the same time. */
export function openSqliteSource(path: string): TransferSource {
  if (!existsSync(path)) throw new Error(`there is no SQLite database at ${path}`);
  const live = !lockFile(join(dirname(path), "lock"));
  const db = openForReading(path);
  checkVersion(db);
  // One snapshot for the whole copy. With a server running, it would keep the log from being truncated.
  if (!live) db.run("BEGIN");
  return {
    id: installation(db),
    live,
    tables: tablesOf(db),
    rows: (table, range, most = -1) => rowsOf(db, table, range, most),
    close: () => db.close(),
  };
}

function checkVersion(db: Database): void {
  const row = db.query<{ user_version: number }, []>("PRAGMA user_version").get();
  const version = row?.user_version ?? 0;
  if (version === NEWEST_SCHEMA) return;
  throw new Error(
    version > NEWEST_SCHEMA
      ? `the database was written by a newer version of Parley (schema ${version})`
      : `the database is of an older version of Parley (schema ${version}): start this version on it once`,
  );
}

/** Identified by its first account: accounts are never deleted, and their creation time is fixed. */
function installation(db: Database): string {
  const first = db
    .query<{ username: string; created_at: number }, []>(
      "SELECT username, created_at FROM accounts ORDER BY id LIMIT 1",
    )
    .get();
  if (!first) throw new Error("there is nothing to copy: nobody has signed up yet");
  return createHash("sha256").update(`${first.username} ${first.created_at}`).digest("hex");
}

function tablesOf(db: Database): Table[] {
  const named = db.query<{ name: string }, [string]>(
    `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'
       AND name NOT IN (SELECT value FROM json_each(?)) ORDER BY name`,
  );
  const columnsOf = db.query<{ name: string; pk: number }, [string]>(
    "SELECT name, pk FROM pragma_table_info(?)",
  );
  return named.all(JSON.stringify(LEFT_OUT)).map(({ name }) => {
    const columns = columnsOf
      .all(name)
      .filter((column) => !LEFT_OUT_COLUMNS.includes(`${name}.${column.name}`));
    const key = columns.filter(({ pk }) => pk > 0).sort((one, other) => one.pk - other.pk);
    return {
      name,
      columns: columns.map((column) => column.name),
      key: key.map((column) => column.name),
    };
  });
}

function rowsOf(db: Database, { name, columns, key }: Table, range: Range, most: number): Row[] {
  const keys = `(${key.join(", ")})`;
  const places = `(${key.map(() => "?").join(", ")})`;
  const bounds = [range.after && `${keys} > ${places}`, range.upTo && `${keys} <= ${places}`];
  const where = bounds.filter(Boolean).join(" AND ") || "true";
  return db
    .query<Row, SQLQueryBindings[]>(
      `SELECT ${columns.join(", ")} FROM ${name} WHERE ${where} ORDER BY ${key.join(", ")} LIMIT ?`,
    )
    .all(...(range.after ?? []), ...(range.upTo ?? []), most);
}
