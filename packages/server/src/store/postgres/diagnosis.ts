import type { SealedKey } from "../agents.ts";
import { openPool, type PostgresOptions } from "./connection.ts";
import { migrations } from "./migrations.ts";

/** The state of the database, read without changing it. */
export interface PostgresDiagnosis {
  readonly version: string;
  readonly encoding: string;
  /** Zero if no server was started on it yet. */
  readonly schema: number;
  readonly newestSchema: number;
  /** How far this machine's clock is ahead of the database's. */
  readonly clockAheadMs: number;
  readonly sealedKeys: readonly SealedKey[];
}

export async function diagnosePostgres(options: PostgresOptions): Promise<PostgresDiagnosis> {
  const pool = openPool(options, 1);
  try {
    const [about] = await pool.unsafe(
      `SELECT current_setting('server_version') AS version, getdatabaseencoding() AS encoding,
         to_regclass('schema_version') IS NOT NULL AS used`,
    );
    const schema = about.used
      ? Number((await pool.unsafe("SELECT version FROM schema_version"))[0]?.version ?? 0)
      : 0;
    const isCurrent = schema === migrations.length;
    const keys = isCurrent
      ? await pool.unsafe("SELECT owner_id, provider, sealed FROM agent_keys")
      : [];
    const sentAt = Date.now();
    const [{ now }] = await pool.unsafe(
      "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now",
    );
    return {
      version: about.version,
      encoding: about.encoding,
      schema,
      newestSchema: migrations.length,
      // The clock was read about in the middle between the question and the answer.
      clockAheadMs: (sentAt + Date.now()) / 2 - now,
      sealedKeys: keys.map((key: SealedKey) => ({ ...key, owner_id: Number(key.owner_id) })),
    };
  } finally {
    await pool.close({ timeout: 0 });
  }
}
