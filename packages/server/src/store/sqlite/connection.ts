import { Database, type SQLQueryBindings, type Statement } from "bun:sqlite";
import { keepPrivate } from "../private-file.ts";
import { migrations } from "./migrations.ts";

/**
 * Opens the database for this process. Commits are not synced by SQLite itself: the group writer
 * syncs the log once for many of them before anything is acknowledged, off the event loop, and
 * the background thread does the checkpoints.
 */
export function openDatabase(path: string): Database {
  keepPrivate(path);
  const db = new Database(path, { create: true, strict: true });
  for (const pragma of [
    "journal_mode = WAL",
    "synchronous = NORMAL",
    "wal_autocheckpoint = 0",
    "foreign_keys = OFF",
    // What is deleted or replaced is overwritten with zeros.
    "secure_delete = ON",
    "temp_store = MEMORY",
    // In KiB. Two connections fill theirs with time: memory grows by that much and no further.
    "cache_size = -16384",
    "busy_timeout = 5000",
  ]) {
    db.run(`PRAGMA ${pragma}`);
  }
  return db;
}

export function migrate(db: Database): void {
  const row = db.query<{ user_version: number }, []>("PRAGMA user_version").get();
  const version = row?.user_version ?? 0;
  if (version > migrations.length) {
    throw new Error(`the database was written by a newer version of Parley (schema ${version})`);
  }
  for (let next = version; next < migrations.length; next++) {
    db.transaction(() => {
      db.run(migrations[next] as string);
      db.run(`PRAGMA user_version = ${next + 1}`);
    }).immediate();
  }
}

/** A connection whose owner can tell whether anything was written since it last looked. */
export interface Connection {
  query<Row>(sql: string): ReadStatement<Row>;
  /** A statement that changes something; with RETURNING, `get` gives the row. */
  change<Row = never>(sql: string): ReadStatement<Row> & { run(...values: Binding[]): Changed };
  wrote: boolean;
}

export type Binding = SQLQueryBindings;
type Changed = { changes: number; lastInsertRowid: number };

export interface ReadStatement<Row> {
  get(...values: Binding[]): Row | null;
  all(...values: Binding[]): Row[];
}

export function connection(db: Database): Connection {
  const self: Connection = {
    wrote: false,
    query: (sql) => db.query(sql) as Statement<never, Binding[]>,
    change: (sql) => {
      const statement = db.query(sql) as Statement<never, Binding[]>;
      return {
        run: (...values) => {
          self.wrote = true;
          return statement.run(...values) as Changed;
        },
        get: (...values) => {
          self.wrote = true;
          return statement.get(...values);
        },
        all: (...values) => {
          self.wrote = true;
          return statement.all(...values);
        },
      };
    },
  };
  return self;
}
