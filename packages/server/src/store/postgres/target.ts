import type { File } from "@parley/protocol";
import { searchedText } from "../../rules/files.ts";
import { Unavailable } from "../store.ts";
import type { Key, Range, Row, Table, TransferTarget } from "../transfer.ts";
import { asClaimed, claim, finished } from "./claim.ts";
import {
  type Connection,
  connections,
  lost,
  openPool,
  type PostgresOptions,
  type Rows,
  stateOf,
} from "./connection.ts";
import { migrate } from "./migrations.ts";
import { searchVector } from "./search.ts";

/** Columns by name, with their type and whether the server generates their values. */
type Columns = ReadonlyMap<string, { type: string; counted: boolean }>;

/** A table of the source, with the types that its columns have in the target. */
interface Kept extends Table {
  readonly types: Columns;
}

/** Opens a database for another store to be copied into. */
export async function openPostgresTarget(options: PostgresOptions): Promise<TransferTarget> {
  const pool = openPool(options, 1);
  await migrate(pool).catch((error) => {
    throw explained(error);
  });
  const only = connections(pool, 1);
  await only.use((connection) => connection.run("SET application_name = 'parley migrate'"));
  const schema = await only.use(readSchema);
  let run = "";

  const kept = (table: Table): Kept => ({ ...table, types: schema.get(table.name) ?? new Map() });
  const change = <Result>(work: (connection: Connection) => Promise<Result>) =>
    only.use((connection) => asClaimed(connection, run, () => work(connection)));

  return {
    claim: async (source) => {
      run = await only.use((connection) => claim(connection, source));
    },
    check: (table) => checkColumns(kept(table)),
    shaped: (table, row) => shaped(kept(table), row),
    rows: (table, range) => only.use((connection) => select(connection, kept(table), range)),
    remove: (table, keys) => change((connection) => remove(connection, kept(table), keys)),
    removeAfter: (table, key) => change((connection) => removeAfter(connection, table, key)),
    insert: (table, rows) => change((connection) => insert(connection, kept(table), rows)),
    finish: async (tables) => {
      for (const name of [...tables.map((table) => table.name), "search"]) {
        await only.use((connection) => connection.run(`ANALYZE ${name}`));
      }
      await change((connection) => finish(connection, tables.map(kept)));
    },
    close: async () => {
      await only.close();
      await pool.close();
    },
  };
}

function explained(error: unknown): unknown {
  if (lost(error)) return new Unavailable("the database cannot be reached");
  if (stateOf(error) !== "42P07") return error;
  return new Error("DATABASE_URL names a database that holds other tables");
}

async function readSchema(connection: Connection): Promise<Map<string, Columns>> {
  const rows = await connection.run<{
    table: string;
    name: string;
    type: string;
    counted: boolean;
  }>(
    `SELECT table_name AS table, column_name AS name, data_type AS type,
       is_identity = 'YES' AS counted
     FROM information_schema.columns WHERE table_schema = current_schema()`,
  );
  const tables = Map.groupBy(rows, ({ table }) => table);
  return new Map(
    [...tables].map(([table, columns]) => [
      table,
      new Map(columns.map(({ name, ...rest }) => [name, rest])),
    ]),
  );
}

/** Columns that the source does not have, or that are not copied. */
const derived: Record<string, Record<string, (row: Row) => unknown>> = {
  // Only read by nodes of an earlier version.
  counters: { changed_at: () => 0 },
  // The change log begins anew.
  webhooks: { since: () => 0 },
  messages: {
    words: ({ conversation_id, content, files, finalized_at, deleted_at }) =>
      finalized_at === null || deleted_at !== null
        ? null
        : sorted(
            searchVector(
              Number(conversation_id),
              searchedText(String(content), (files as File[] | null) ?? []),
            ),
          ),
  },
};
const derivedOf = ({ name }: Table) => Object.entries(derived[name] ?? {});

/** The target stores the search words of messages in another table. */
const isIndexed = ({ name }: Table) => name === "messages";
/** As the server stores them: each word once. */
const sorted = (words: string) => [...new Set(words.split(" "))].sort().join(" ");

/** Throws when a column exists in only one of the two stores: it would be lost. */
function checkColumns({ name, columns, types }: Kept): void {
  const here = [...types.keys()].filter((column) => !derived[name]?.[column]);
  if (new Set(here).symmetricDifference(new Set(columns)).size === 0) return;
  throw new Error(`the table ${name} is not the same in SQLite and PostgreSQL`);
}

function shaped(table: Kept, row: Row): Row {
  const result: Row = {};
  for (const column of table.columns) {
    result[column] = converted(row[column], table.types.get(column)?.type);
  }
  for (const [column, make] of derivedOf(table)) result[column] = make(result);
  return result;
}

function converted(value: unknown, type: string | undefined): unknown {
  if (value === null) return null;
  if (type === "boolean") return value === 1;
  if (type === "jsonb") return ordered(JSON.parse(String(value)));
  // PostgreSQL cannot store this one character.
  return typeof value === "string" ? value.replaceAll("\0", "\ufffd") : value;
}

/** Sorts the fields of objects: the server stores them in its own order. */
function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(fields.map(([name, field]) => [name, ordered(field)]));
}

async function select(connection: Connection, table: Kept, { after, upTo }: Range): Promise<Row[]> {
  const values = [...(after ?? []), ...(upTo ?? [])];
  const where = [
    after && `${keyOf(table)} > ${places(table, 1)}`,
    upTo && `${keyOf(table)} <= ${places(table, 1 + (after?.length ?? 0))}`,
  ].filter(Boolean);
  const columns = [...table.columns, ...derivedOf(table).map(([name]) => name)];
  const from = isIndexed(table)
    ? `(SELECT m.*, s.words::text AS words FROM messages m LEFT JOIN search s ON s.message_id = m.id) t`
    : `${table.name} t`;
  const rows = await connection.run<Row>(
    `SELECT ${columns.join(", ")} FROM ${from} WHERE ${where.join(" AND ") || "true"}
     ORDER BY ${table.key.join(", ")}`,
    values,
  );
  const objects = table.columns.filter((column) => table.types.get(column)?.type === "jsonb");
  for (const row of rows) {
    for (const column of objects) row[column] = ordered(row[column]);
    if (typeof row.words === "string") row.words = sorted(row.words);
  }
  return rows;
}

const keyOf = ({ key }: Table) => `(${key.join(", ")})`;
const places = ({ key }: Table, from: number) =>
  `(${key.map((_, place) => `$${from + place}`).join(", ")})`;

const recordset = (columns: readonly string[], types: Columns) =>
  `jsonb_to_recordset($1::jsonb) AS g (${columns
    .map((column) => `${column} ${types.get(column)?.type ?? "text"}`)
    .join(", ")})`;

async function remove(connection: Connection, table: Kept, keys: readonly Key[]): Promise<number> {
  const { name, key, types } = table;
  const given = keys.map((values) =>
    Object.fromEntries(key.map((column, place) => [column, values[place]])),
  );
  if (isIndexed(table)) {
    await connection.run(
      `DELETE FROM search USING ${recordset(key, types)} WHERE message_id = g.id`,
      [given],
    );
  }
  const { count } = await connection.run(
    `DELETE FROM ${name} t USING ${recordset(key, types)}
     WHERE ${key.map((column) => `t.${column} = g.${column}`).join(" AND ")}`,
    [given],
  );
  return count;
}

async function removeAfter(connection: Connection, table: Table, key: Key | null): Promise<number> {
  const beyond = key ? `WHERE ${keyOf(table)} > ${places(table, 1)}` : "";
  if (isIndexed(table)) {
    await connection.run(`DELETE FROM search ${key ? "WHERE message_id > $1" : ""}`, key ?? []);
  }
  const { count } = await connection.run(`DELETE FROM ${table.name} ${beyond}`, key ?? []);
  return count;
}

async function insert(connection: Connection, table: Kept, rows: readonly Row[]): Promise<number> {
  const { name, types } = table;
  const columns = [...types.keys()];
  const { count }: Rows<never> = await connection.run(
    `INSERT INTO ${name} (${columns.join(", ")})
     SELECT ${columns.join(", ")} FROM ${recordset(columns, types)} ON CONFLICT DO NOTHING`,
    [rows],
  );
  if (isIndexed(table)) {
    await connection.run(
      `INSERT INTO search (message_id, conversation_id, words) SELECT id, conversation_id, words::tsvector
       FROM jsonb_to_recordset($1::jsonb) AS g (id bigint, conversation_id bigint, words text)
       WHERE words IS NOT NULL
       ON CONFLICT (message_id) DO UPDATE SET words = excluded.words
       WHERE search.words IS DISTINCT FROM excluded.words`,
      [rows],
    );
  }
  return count;
}

/** Sets the sequences after the copied ids, and marks the copy as finished. */
async function finish(connection: Connection, tables: readonly Kept[]): Promise<void> {
  for (const { name, types } of tables) {
    for (const [column] of [...types].filter(([, { counted }]) => counted)) {
      await connection.run(
        `SELECT setval(pg_get_serial_sequence('${name}', '${column}'),
           coalesce(max(${column}), 1), max(${column}) IS NOT NULL) FROM ${name}`,
      );
    }
  }
  // The history continues in this database.
  await connection.run("UPDATE history SET place = ''");
  await finished(connection);
}
