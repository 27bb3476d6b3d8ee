import type { Database } from "bun:sqlite";
import { ANY_STORED_FILE } from "../files.ts";
import { NOTHING_SEALED, SEALED, type SealedTexts } from "../sealed-texts.ts";
import { openForReading } from "./connection.ts";
import { NEWEST_SCHEMA } from "./migrations.ts";

/** The state of a database, read without changing it. A server may use it at the same time. */
export interface SqliteDiagnosis {
  readonly schema: number;
  /** What SQLite says about the structure: `ok`, or the first problem. Null if it was not checked. */
  readonly integrity: string | null;
  /** When the newest message was stored, in milliseconds. Null if there is none. */
  readonly newestMessageAt: number | null;
  readonly sealed: SealedTexts;
  /** Whether people have sent files. */
  readonly hasFiles: boolean;
}

export function diagnoseSqlite(path: string, withIntegrity: boolean): SqliteDiagnosis {
  using db = openForReading(path);
  const schema = db.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version;
  const check = withIntegrity
    ? db.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()
    : null;
  const found = { schema: schema ?? 0, integrity: check?.quick_check ?? null };
  const isReadable = found.integrity === null || found.integrity === "ok";
  // The queries below are for the schema of this version.
  if (!isReadable || schema !== NEWEST_SCHEMA)
    return { ...found, newestMessageAt: null, sealed: NOTHING_SEALED, hasFiles: false };
  const newest = db.query<{ created_at: number }, []>(
    "SELECT created_at FROM messages ORDER BY id DESC LIMIT 1",
  );
  return {
    ...found,
    newestMessageAt: newest.get()?.created_at ?? null,
    sealed: readSealed(db),
    hasFiles: db.query(ANY_STORED_FILE).get() !== null,
  };
}

const readSealed = (db: Database): SealedTexts => {
  const found = Object.entries(SEALED).map(([kind, sql]) => [kind, db.query(sql).all()]);
  return Object.fromEntries(found) as SealedTexts;
};
