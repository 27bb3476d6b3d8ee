import type { SQL } from "bun";
import { ANY_STORED_FILE } from "../files.ts";
import { NOTHING_SEALED, SEALED, type SealedTexts } from "../sealed-texts.ts";
import { numbered, openPool, type PostgresOptions } from "./connection.ts";
import { NEWEST_SCHEMA } from "./migrations.ts";

/** The state of the database, read without changing it. */
export interface PostgresDiagnosis {
  readonly version: string;
  readonly encoding: string;
  /** Zero if no server was started on it yet. */
  readonly schema: number;
  /** How far this machine's clock is ahead of the database's. */
  readonly clockAheadMs: number;
  readonly sealed: SealedTexts;
  /** Whether people have sent files. */
  readonly hasFiles: boolean;
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
    const isCurrent = schema === NEWEST_SCHEMA;
    const sealed = isCurrent ? await readSealed(pool) : NOTHING_SEALED;
    const hasFiles = isCurrent && (await pool.unsafe(ANY_STORED_FILE)).length > 0;
    const sentAt = Date.now();
    const [{ now }] = await pool.unsafe(
      "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now",
    );
    return {
      version: about.version,
      encoding: about.encoding,
      schema,
      // The clock was read about in the middle between the question and the answer.
      clockAheadMs: (sentAt + Date.now()) / 2 - now,
      sealed,
      hasFiles,
    };
  } finally {
    await pool.close({ timeout: 0 });
  }
}

async function readSealed(pool: SQL): Promise<SealedTexts> {
  const found = Object.entries(SEALED).map(
    async ([kind, sql]) => [kind, numbered(await pool.unsafe(sql))] as const,
  );
  return Object.fromEntries(await Promise.all(found)) as unknown as SealedTexts;
}
