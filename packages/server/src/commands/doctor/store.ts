import { existsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { lostDatabase, REMEDY_OF_LOSS } from "../../compose/backends.ts";
import type { Config, Database } from "../../config/config.ts";
import { fileProblem } from "../../config/setting.ts";
import { newestSchema, type Schemas, schemaProblem } from "../../store/migrations/index.ts";
import { diagnosePostgres } from "../../store/postgres/diagnosis.ts";
import { migrations as postgres } from "../../store/postgres/migrations.ts";
import { diagnoseSqlite, type SqliteDiagnosis } from "../../store/sqlite/diagnosis.ts";
import { migrations as sqlite } from "../../store/sqlite/migrations.ts";
import { reasonOf } from "../output.ts";
import { type Check, capital, failed, ok, warning } from "./check.ts";
import { checkMasterKey } from "./master-key.ts";

/** A difference that people notice in the order of messages, and that ends tokens early or late. */
const CLOCK_WARNING_MS = 1000;
const CLOCK_FAILURE_MS = 30_000;

export const checkStore = async (config: Config, withIntegrity: boolean): Promise<Check[]> =>
  config.database ? checkPostgres(config, config.database) : checkSqlite(config, withIntegrity);

function checkSqlite(config: Config, withIntegrity: boolean): Check[] {
  const path = resolve(config.dataDir, "parley.db");
  // The check of the data folder reports this.
  if (!statSync(dirname(path), { throwIfNoEntry: false })?.isDirectory()) return [];
  const lost = lostDatabase(path);
  if (lost) return [failed("store", lost, `${capital(REMEDY_OF_LOSS)}.`)];
  if (!existsSync(path)) {
    const todo = "The server creates it. If it ran before, set PARLEY_DATA to its folder.";
    return [warning("store", `there is no database at ${path}`, todo)];
  }
  let found: SqliteDiagnosis;
  try {
    found = diagnoseSqlite(path, withIntegrity);
  } catch (error) {
    const todo = "Run this as the user of the server. If that is not it, restore a backup.";
    return [failed("store", `${path} cannot be read: ${fileProblem(error)}`, todo)];
  }
  return [
    checkSchema("SQLite", found.schema, sqlite),
    ...checkIntegrity(found),
    ...checkMasterKey(config, found.sealed),
    checkOwnClock(found),
  ];
}

function checkIntegrity({ integrity }: SqliteDiagnosis): Check[] {
  if (integrity === null) return [];
  if (integrity === "ok") return [ok("integrity", "the structure of the database is intact")];
  const todo = "Stop the server, keep a copy of the data folder, and restore a backup.";
  return [failed("integrity", `the database is damaged: ${integrity}`, todo)];
}

async function checkPostgres(config: Config, database: Database): Promise<Check[]> {
  try {
    const found = await diagnosePostgres(database);
    return [
      checkSchema(`PostgreSQL ${found.version}`, found.schema, postgres),
      ...checkEncoding(found.encoding),
      ...checkMasterKey(config, found.sealed),
      checkDatabaseClock(found.clockAheadMs),
    ];
  } catch (error) {
    const todo = "Check DATABASE_URL, that PostgreSQL runs, and the network in between.";
    return [failed("store", `PostgreSQL cannot be used: ${reasonOf(error)}`, todo)];
  }
}

function checkEncoding(encoding: string): Check[] {
  if (encoding === "UTF8") return [];
  const todo = "Create a database with the encoding UTF8 and set DATABASE_URL to it.";
  return [failed("store", `the encoding of the database is ${encoding}`, todo)];
}

function checkSchema(store: string, schema: number, migrations: Schemas): Check {
  const found = `${store}, schema ${schema}`;
  const problem = schemaProblem(migrations, schema);
  if (problem !== null) {
    const todo = "Install that version, or restore a backup that this version made.";
    return failed("store", `${found}: ${problem}`, todo);
  }
  const newest = newestSchema(migrations);
  if (schema === newest) return ok("store", found);
  return ok("store", `${found}; the next start migrates it to ${newest}`);
}

/** Without another clock to compare with, at least time must not have gone back. */
function checkOwnClock({ newestMessageAt }: SqliteDiagnosis): Check {
  const aheadMs = (newestMessageAt ?? 0) - Date.now();
  const now = new Date().toISOString();
  if (aheadMs < CLOCK_WARNING_MS) return ok("clock", now);
  const message = `${now} is ${seconds(aheadMs)} before the newest message`;
  return failed("clock", message, "Set the clock, and keep it in sync with NTP.");
}

function checkDatabaseClock(aheadMs: number): Check {
  const distance = Math.abs(aheadMs);
  const message = `${seconds(distance)} ${aheadMs > 0 ? "ahead of" : "behind"} the database's`;
  const todo = "Keep the clocks of all nodes and of the database in sync with NTP.";
  if (distance < CLOCK_WARNING_MS) return ok("clock", "in sync with the database's");
  return distance < CLOCK_FAILURE_MS
    ? warning("clock", message, todo)
    : failed("clock", message, todo);
}

/** What other checks need to know of the store. Null if it cannot be read: its own check says why. */
export async function readStored({ database, dataDir }: Config) {
  try {
    return database
      ? await diagnosePostgres(database)
      : diagnoseSqlite(resolve(dataDir, "parley.db"), false);
  } catch {
    // The check of the store says why.
    return null;
  }
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
