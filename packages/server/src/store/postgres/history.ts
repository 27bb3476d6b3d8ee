import type { TransactionSQL } from "bun";

/** Loading a dump creates the tables again, with new object ids. */
const TABLES = `SELECT concat_ws('-', 'history'::regclass::oid,
  (SELECT oid FROM pg_database WHERE datname = current_database())) AS place`;

/** Point-in-time recovery and the promotion of a standby change the timeline. */
const TIMELINE = `SELECT concat_ws('-', left(pg_walfile_name(pg_current_wal_lsn()), 8),
  (SELECT system_identifier FROM pg_control_system())) AS place`;

/** Begins a new history if the database was restored from a backup since a node last started. */
export async function followHistory(tx: TransactionSQL): Promise<void> {
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
