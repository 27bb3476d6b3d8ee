import { constants, Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { missingMigrations } from "../migrations/index.ts";
import { keepPrivate } from "../private-file.ts";
import { migrations, NEWEST_SCHEMA } from "./migrations.ts";

/** How long a connection waits for a lock of another process. */
export const BUSY_TIMEOUT_MS = 5000;

/**
 * Opens the database. SQLite itself does not sync commits and runs no checkpoints: the batch writer
 * syncs the write-ahead log once for many commits, off the event loop, before it acknowledges them,
 * and the background thread runs the checkpoints.
 */
export function openDatabase(path: string): Database {
  keepPrivate(path);
  const db = new Database(path, { create: true, strict: true });
  for (const pragma of [
    `busy_timeout = ${BUSY_TIMEOUT_MS}`,
    "journal_mode = WAL",
    "synchronous = NORMAL",
    "wal_autocheckpoint = 0",
    "foreign_keys = OFF",
    // Overwrites deleted and replaced content with zeros.
    "secure_delete = ON",
    "temp_store = MEMORY",
    // In KiB. Each of the two connections fills its cache with time; memory grows no further.
    "cache_size = -16384",
  ]) {
    db.run(`PRAGMA ${pragma}`);
  }
  keepLog(db, true);
  return db;
}

/** Opens the database of a server, which may run, for reading alone. */
export function openForReading(path: string): Database {
  // SQLite would delete its log, which may have all that the file has lost.
  if (statSync(path).size === 0) throw new Error(`${path} is empty`);
  const db = new Database(path, { readonly: true, strict: true });
  db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  return db;
}

/** Sets whether the log stays when this connection is the last one that is closed. */
export function keepLog(db: Database, isKept: boolean): void {
  db.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, isKept ? 1 : 0);
}

/**
 * Empties the write-ahead log. Returns false, without waiting, if somebody reads an older state of the
 * database, such as a backup: the log has that state.
 */
export function truncateLog(db: Database): boolean {
  db.run("PRAGMA busy_timeout = 0");
  try {
    const checkpoint = db.query<{ busy: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)");
    return checkpoint.get()?.busy === 0;
  } finally {
    db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  }
}

/** Migrates the schema. Returns the one that it had; zero for a new database. */
export function migrate(db: Database): number {
  const from = schemaOf(db);
  if (from === NEWEST_SCHEMA) return from;
  // In one transaction: an upgrade that fails leaves a database that the earlier version can open.
  db.transaction(() => {
    // Another process may have migrated it meanwhile.
    for (const { sql, finish } of missingMigrations(migrations, schemaOf(db))) {
      db.run(sql);
      finish?.(db);
    }
    db.run(`PRAGMA user_version = ${NEWEST_SCHEMA}`);
  }).immediate();
  return from;
}

const schemaOf = (db: Database): number =>
  db.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? 0;
