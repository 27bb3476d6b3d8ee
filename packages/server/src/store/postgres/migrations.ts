import type { SQL, TransactionSQL } from "bun";
import { accountNames } from "../account-names.ts";
import { SCHEMA } from "../migrations/0.1.0.ts";
import { STEP as STEP_0_2 } from "../migrations/0.2.0.ts";
import { STEP as STEP_0_3 } from "../migrations/0.3.0.ts";
import { type Migration, missingMigrations, newestSchema, type Text } from "../migrations/index.ts";
import { stateOf } from "./connection.ts";

/**
 * They use only what compatible distributed databases support too: no extensions, triggers or stored
 * functions. Neither store checks foreign keys: rows that others refer to are never deleted.
 */
export const migrations: readonly Migration<SQL>[] = [
  { schema: 1, sql: rewritten(SCHEMA) },
  { schema: 57, sql: rewritten(STEP_0_2), finish: indexAccounts },
  { schema: 58, sql: rewritten(STEP_0_3) },
];

/** The schema that this version of the server uses. */
export const NEWEST_SCHEMA = newestSchema(migrations);

function rewritten(text: Text): string {
  return text((postgres) => postgres).replaceAll(/ REFERENCES \w+ \(\w+\)/g, "");
}

const INDEXED_AT_ONCE = 1000;

/** Indexes the names of accounts, which 0.1.0 did not. */
async function indexAccounts(tx: SQL): Promise<void> {
  for (let after = 0; ; ) {
    const people: { id: bigint; username: string; display_name: string }[] = await tx.unsafe(
      `SELECT id, username, display_name FROM accounts WHERE kind = 'human' AND id > $1
       ORDER BY id LIMIT ${INDEXED_AT_ONCE}`,
      [after],
    );
    const last = people.at(-1);
    if (!last) return;
    after = Number(last.id);
    const names = people.flatMap(({ id, username, display_name }) =>
      accountNames(username, display_name).map((name) => ({
        name,
        username,
        account_id: Number(id),
      })),
    );
    await tx.unsafe(
      `INSERT INTO account_names (name, username, account_id) SELECT name, username, account_id
       FROM jsonb_to_recordset($1::jsonb) AS n (name text, username text, account_id bigint)`,
      [names],
    );
  }
}

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
async function repeatedly<Result>(states: readonly string[], work: () => Promise<Result>) {
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

/** Loading a dump creates the tables again, with new object ids. */
const TABLES = `SELECT concat_ws('-', 'history'::regclass::oid,
  (SELECT oid FROM pg_database WHERE datname = current_database())) AS place`;

/** Point-in-time recovery and the promotion of a standby change the timeline. */
const TIMELINE = `SELECT concat_ws('-', left(pg_walfile_name(pg_current_wal_lsn()), 8),
  (SELECT system_identifier FROM pg_control_system())) AS place`;

/** Begins a new history if the database was restored from a backup since a node last started. */
async function followHistory(tx: TransactionSQL): Promise<void> {
  const [tables] = await tx.unsafe(TABLES);
  // Some hosted databases forbid these functions: only the tables are compared there.
  const [timeline] = await tx.savepoint((inner) => inner.unsafe(TIMELINE)).catch(() => []);
  await tx.unsafe(
    `INSERT INTO history AS h (one, id, place) VALUES (1, $1, $2)
     ON CONFLICT (one) DO UPDATE SET place = excluded.place,
       id = CASE WHEN h.place = '' THEN h.id ELSE excluded.id END
     WHERE h.place <> excluded.place`,
    [Bun.randomUUIDv7(), `${tables.place} ${timeline?.place ?? ""}`],
  );
}
