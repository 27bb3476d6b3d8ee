/**
 * Brings a database from the schema of the release before, or from none, to that of a release. It is
 * never changed once it is released.
 */
export interface Migration<Db> {
  /** The number of the schema that the database has then. */
  readonly schema: number;
  readonly sql: string;
  /** What statements alone cannot do. */
  readonly finish?: (db: Db) => void | Promise<void>;
}

/**
 * The text of a migration in PostgreSQL's dialect, with the references and the other parts that only
 * SQLite has. Each store rewrites it.
 */
export type Text = (either: Either) => string;

/** Chooses what the stores have in different forms, or one of them does not have. */
export type Either = (postgres: string, sqlite?: string) => string;

/** The newest schema, which this version of the server uses. */
export const newestSchema = (migrations: Schemas): number => migrations.at(-1)?.schema ?? 0;

export type Schemas = readonly Pick<Migration<never>, "schema">[];

/** Why this version of the server cannot use a database with a schema; null if it can, at least migrated. */
export function schemaProblem(migrations: Schemas, schema: number): string | null {
  if (schema > newestSchema(migrations)) return "written by a newer version of Parley";
  // An empty database has the schema 0.
  if (schema === 0 || migrations.some((migration) => migration.schema === schema)) return null;
  return "written by a version of Parley that was never released";
}

/** What a database with a schema still needs. Throws if it cannot be used. */
export function missingMigrations<Db>(migrations: readonly Migration<Db>[], schema: number) {
  const problem = schemaProblem(migrations, schema);
  if (problem !== null) throw new Error(`the database was ${problem} (schema ${schema})`);
  return migrations.filter((migration) => migration.schema > schema);
}
