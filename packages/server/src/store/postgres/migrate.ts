import type { SQL, TransactionSQL } from "bun";
import { missingMigrations } from "../migrations/index.ts";
import { stateOf } from "./connection.ts";
import { followHistory } from "./history.ts";
import { migrations, NEWEST_SCHEMA } from "./migrations.ts";

/** SQLSTATEs when another node creates the same table or row at the same time. */
const CREATED_CONCURRENTLY = ["23505", "42P07", "42710", "40001"];
/** SQLSTATEs of a lock timeout, a deadlock and a serialization failure: running nodes use the tables. */
const LOCK_CONFLICTS = ["55P03", "40P01", "40001"];
const MAX_ATTEMPTS = 25;

export interface Migrated {
  /** Identifies the installation. */
  readonly installation: string;
  /** The version that the schema had; zero for a new database. */
  readonly from: number;
  readonly to: number;
}

/** Migrates the schema and updates the history. Nodes that start together do it one after another. */
export async function migrate(pool: SQL): Promise<Migrated> {
  await repeatedly(CREATED_CONCURRENTLY, () => createVersionTable(pool));
  return repeatedly(LOCK_CONFLICTS, () => pool.begin(migrateSchema));
}

async function migrateSchema(tx: TransactionSQL): Promise<Migrated> {
  // Without a timeout for this row, because another node may migrate for long. The usual timeout holds
  // for the locks of tables: units that use a table queue behind a migration that waits for its lock.
  await tx.unsafe("SET LOCAL lock_timeout = 0");
  const [row] = await tx.unsafe("SELECT version, installation FROM schema_version FOR UPDATE");
  await tx.unsafe("SET LOCAL lock_timeout TO DEFAULT");
  const version = Number(row.version);
  for (const { sql, finish } of missingMigrations(migrations, version)) {
    await tx.unsafe(sql);
    await finish?.(tx);
  }
  await tx.unsafe("UPDATE schema_version SET version = $1", [NEWEST_SCHEMA]);
  await followHistory(tx);
  return { installation: row.installation, from: version, to: NEWEST_SCHEMA };
}

async function createVersionTable(pool: SQL): Promise<void> {
  await pool.unsafe(
    `CREATE TABLE IF NOT EXISTS schema_version (one boolean PRIMARY KEY, version bigint NOT NULL,
       installation uuid NOT NULL)`,
  );
  await pool.unsafe(
    `INSERT INTO schema_version (one, version, installation) VALUES (true, 0, $1)
     ON CONFLICT DO NOTHING`,
    [Bun.randomUUIDv7()],
  );
}

/** Does the work again after errors with these SQLSTATEs, and if it could not connect in time. */
async function repeatedly<Result>(
  states: readonly string[],
  work: () => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const isTransient = isTimeout(error) || states.includes(stateOf(error) ?? "");
      if (attempt === MAX_ATTEMPTS || !isTransient) throw error;
    }
  }
}

/** A server that is reachable but busy, for instance because many nodes start at the same time. */
const isTimeout = (error: unknown) =>
  (error as { code?: string }).code === "ERR_POSTGRES_CONNECTION_TIMEOUT";
