import type { SQL } from "bun";
import type { Connection } from "./connection.ts";

/** Records which installation is copied into this database, and by which run. It is never deleted. */
const TABLE = `CREATE TABLE IF NOT EXISTS migration_source (
  one boolean PRIMARY KEY,
  source text NOT NULL,
  run uuid NOT NULL,
  begun_at bigint NOT NULL,
  finished_at bigint
)`;

interface Claim {
  source: string;
  run: string;
  finished_at: number | null;
}

/** Throws while a copy is unfinished: the next run would undo what a server writes. */
export async function refuseUnfinished(pool: SQL): Promise<void> {
  const [found] = await pool.unsafe("SELECT to_regclass('migration_source') AS name");
  if (found?.name === null) return;
  const [row] = await pool.unsafe("SELECT 1 FROM migration_source WHERE finished_at IS NULL");
  if (!row) return;
  throw new Error(
    "the migration into this database is not finished: stop the server that runs on SQLite and run the migration again",
  );
}

/** Returns the id of this run. Waits for a write of the run before it. */
export async function claim(connection: Connection, source: string): Promise<string> {
  const run = Bun.randomUUIDv7();
  await connection.run(TABLE);
  await refuseServers(connection);
  const [known] = await connection.run<Claim>(
    "SELECT source, run, finished_at FROM migration_source",
  );
  if (known) refuseOther(known, source);
  else await refuseData(connection);
  await connection.run(
    `INSERT INTO migration_source (one, source, run, begun_at) VALUES (true, $1, $2, $3)
     ON CONFLICT (one) DO UPDATE SET run = excluded.run WHERE migration_source.finished_at IS NULL`,
    [source, run, Date.now()],
  );
  return run;
}

function refuseOther({ source, finished_at }: Claim, mine: string): void {
  if (source !== mine) throw new Error("DATABASE_URL names a copy of another installation");
  if (finished_at === null) return;
  throw new Error(
    `the migration into this database was finished at ${new Date(finished_at).toISOString()}: it is in use, or ready to be`,
  );
}

async function refuseServers(connection: Connection): Promise<void> {
  const [row] = await connection.run(
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
     AND application_name = 'parley' AND pid <> pg_backend_pid() LIMIT 1`,
  );
  if (row) throw new Error("DATABASE_URL names a database that a server uses: stop it first");
}

async function refuseData(connection: Connection): Promise<void> {
  const [row] = await connection.run("SELECT 1 FROM accounts LIMIT 1");
  if (!row) return;
  throw new Error("DATABASE_URL names a database that is in use: the migration needs an empty one");
}

/** Makes a change in a transaction, if this run still has the claim. */
export async function asClaimed<Result>(
  connection: Connection,
  run: string,
  change: () => Promise<Result>,
): Promise<Result> {
  await connection.run("BEGIN");
  try {
    const [row] = await connection.run<Claim>(
      "SELECT run FROM migration_source WHERE one FOR UPDATE",
    );
    if (row?.run !== run) throw new Error("another run of the migration has taken over");
    const result = await change();
    await connection.run("COMMIT");
    return result;
  } catch (error) {
    // Without a connection the server rolls back by itself. The first error is the one to report.
    await connection.run("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

export async function finished(connection: Connection): Promise<void> {
  await connection.run("UPDATE migration_source SET finished_at = $1", [Date.now()]);
}
