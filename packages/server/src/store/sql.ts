import type { Awaitable } from "./awaitable.ts";

/** A parameter of a statement. Objects are passed by `json`, lists by `list`. */
export type Value = string | number | boolean | null | Encoded;

/** `$1` stands for the first. */
export type Values = readonly Value[];

/** What `json` and `list` return: how a dialect takes an object or a list. */
export type Encoded = { readonly [key: string]: unknown } | readonly unknown[] | string;

/**
 * A statement in PostgreSQL's dialect, which SQLite's side rewrites (see `sqlite/dialect.ts`), or one
 * form for each dialect where that is not possible. It is a constant, or one of few variants: both
 * sides keep what they prepare.
 */
export type Statement = string | { readonly postgres: string; readonly sqlite: string };

/**
 * The current time in milliseconds, in a statement. PostgreSQL takes its own clock, the only one that all
 * nodes share; SQLite's side passes that of this process.
 */
export const NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/**
 * How the methods of the store run statements in a unit of work. SQLite answers synchronously,
 * PostgreSQL in the order of the calls: what needs an earlier result awaits it.
 */
export interface Sql {
  all<Row>(sql: Statement, values?: Values): Awaitable<Row[]>;
  /** The first row. */
  get<Row>(sql: Statement, values?: Values): Awaitable<Row | null>;
  /** Runs a statement that changes something, and returns the number of changed rows. */
  change(sql: Statement, values?: Values): Awaitable<number>;
  /**
   * The rows that a statement with RETURNING has changed. The method has stated that it changes the
   * conversations whose ids they have as `conversation_id`.
   */
  changed<Row>(sql: Statement, values?: Values): Awaitable<Row[]>;
  /**
   * Owns a conversation: no other unit, on any node, changes it until this unit ends, and this unit
   * reads its latest state. Units that only read own nothing.
   */
  own(conversationId: number): Awaitable<void>;
  /**
   * The row that `sql` finds by a value, whose conversation a write unit owns from then on, and then a
   * row of another table with the id. `place` finds its `conversation_id` alone.
   */
  getOwned(place: string, sql: string, value: Value, also?: OwnedTable): Awaitable<Place | null>;
  /** Owns the conversations among these that no other unit owns now, and returns their ids. */
  ownFree(conversationIds: readonly number[]): Awaitable<number[]>;
  /**
   * States that this method changes a conversation. Throws if the unit does not own it. A method that
   * has not stated it, and owns no conversation itself, cannot run a statement that changes one.
   */
  changes(conversationId: number): void;
  /** States that this method needs to own no conversation: no other unit decides by what it changes. */
  changesUnowned(): void;
  /**
   * Owns a turn, an account (the spending of an agent, the own counter and the sessions of a person) or
   * the counter of names. A unit owns them in this order, after the conversation.
   */
  ownRow(table: OwnedTable, id: number): Awaitable<void>;
  /** Makes search find a message by this text; null if it shall not be found any more. */
  index(message: IndexedMessage, text: string | null): Awaitable<void>;
  /** A list of numbers or texts, for `= ANY($1::bigint[])` and `unnest($1::text[])`. */
  list(values: readonly (number | string | null)[]): Encoded;
  /** An object or a list that is stored as JSON, or that a statement reads as JSON. */
  json(value: object): Encoded;
  json(value: object | null | undefined): Encoded | null;
}

/** What belongs to a conversation. */
export interface Place {
  readonly conversation_id: number;
}

/** A message as the search index knows it. */
export interface IndexedMessage extends Place {
  readonly id: number;
}

export type OwnedTable = "turns" | "accounts" | "name_counter";

/** The methods of a resource as handlers see them: without the first parameter. */
export type Bound<Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends (
    db: Sql,
    ...values: infer Values
  ) => infer Result
    ? (...values: Values) => Awaitable<Awaited<Result>>
    : never;
};

/** A value of a JSON column: SQLite returns it as text, PostgreSQL decoded. */
export const decoded = <Stored extends object | null>(stored: string | Stored): Stored =>
  typeof stored === "string" ? (JSON.parse(stored) as Stored) : stored;

type Fields = Record<string, unknown>;

/** The parts of columns such as `agent.id`, and null for others: kept, because dividing them takes long. */
const places = new Map<string, readonly [field: string, name: string] | null>();

function placeOf(column: string) {
  let place = places.get(column);
  if (place === undefined) {
    const dot = column.indexOf(".");
    place = dot === -1 ? null : [column.slice(0, dot), column.slice(dot + 1)];
    places.set(column, place);
  }
  return place;
}

/**
 * Converts rows to records: decodes JSON columns, makes booleans of `flags`, which SQLite has as numbers,
 * and collects columns such as `agent.id` in one object.
 */
export const reader =
  <Read extends object>({
    json = [],
    flags = [],
  }: {
    json?: readonly (keyof Read)[];
    flags?: readonly (keyof Read)[];
  } = {}) =>
  (row: object): Read => {
    const read: Fields = {};
    // Faster than entries of the row: some methods read a thousand members.
    for (const column in row) {
      const value = (row as Fields)[column];
      const place = placeOf(column);
      if (place === null) {
        read[column] = value;
        continue;
      }
      const [field, name] = place;
      read[field] ??= {};
      (read[field] as Fields)[name] = value;
    }
    for (const column of json as readonly string[])
      read[column] = decoded(read[column] as string | null);
    for (const column of flags as readonly string[]) read[column] = Boolean(read[column]);
    return read as Read;
  };

/** Collects the values of a statement that is put together. `bind` returns the placeholder of a value. */
function bindings(): { values: Value[]; bind: (value: Value) => string } {
  const values: Value[] = [];
  return { values, bind: (value) => `$${values.push(value)}` };
}

/**
 * The conditions among these whose value is given, `?` in their place: a statement that has no others
 * uses an index.
 */
export function given(conditions: Readonly<Record<string, Value | undefined>>) {
  const { values, bind } = bindings();
  const where = Object.entries(conditions).flatMap(([condition, value]) =>
    value === undefined ? [] : [condition.replace("?", () => bind(value))],
  );
  return { where: where.join(" AND ") || "true", values, bind };
}

/** The rows of a statement, each converted. */
export async function allAs<Row, Result>(
  db: Sql,
  to: (row: Row) => Result,
  sql: Statement,
  values?: Values,
): Promise<Result[]> {
  return (await db.all<Row>(sql, values)).map(to);
}

/** The first row, converted. */
export async function getAs<Row, Result>(
  db: Sql,
  to: (row: Row) => Result,
  sql: Statement,
  values?: Values,
): Promise<Result | null> {
  const row = await db.get<Row>(sql, values);
  return row && to(row);
}

/** Whether a statement finds a row. */
export async function exists(db: Sql, sql: Statement, values?: Values): Promise<boolean> {
  return (await db.get(sql, values)) !== null;
}

/** The values of the only column that a statement selects. */
export async function column<Each>(db: Sql, sql: Statement, values?: Values): Promise<Each[]> {
  return allAs(db, (row: Record<string, Each>) => Object.values(row)[0] as Each, sql, values);
}

/** The value of the only column in the first row; null if there is no row. */
export async function firstValue<Each>(
  db: Sql,
  sql: Statement,
  values?: Values,
): Promise<Each | null> {
  return getAs(db, (row: Record<string, Each>) => Object.values(row)[0] as Each, sql, values);
}

/** Runs a statement that changes something, and returns whether it did. */
export async function hasChanged(db: Sql, sql: Statement, values?: Values): Promise<boolean> {
  return (await db.change(sql, values)) > 0;
}

/** The number in the only column of the first row; zero if there is no row, or it is null. */
export async function firstNumber(db: Sql, sql: Statement, values?: Values): Promise<number> {
  return (await firstValue<number>(db, sql, values)) ?? 0;
}

/** Values by their columns. */
type Columns = Readonly<Record<string, Value>>;

/** Inserts a row with these columns. Returns how many it inserted: none if there is a conflict. */
export function insert(db: Sql, table: string, row: Columns, onConflict = ""): Awaitable<number> {
  const columns = Object.keys(row);
  const places = columns.map((_, place) => `$${place + 1}`);
  return db.change(
    `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${places.join(", ")}) ${onConflict}`,
    Object.values(row),
  );
}

/** Inserts a row unless there is one that it conflicts with. Returns whether it did. */
export const insertNew = async (db: Sql, table: string, row: Columns): Promise<boolean> =>
  (await insert(db, table, row, "ON CONFLICT DO NOTHING")) > 0;

/** Inserts a row, or sets these columns of the row with the same keys. */
export async function upsert(
  db: Sql,
  table: string,
  keys: Columns,
  columns: Columns,
): Promise<void> {
  const set = Object.keys(columns).map((column) => `${column} = excluded.${column}`);
  const onConflict = `ON CONFLICT (${Object.keys(keys).join(", ")}) DO UPDATE SET ${set.join(", ")}`;
  await insert(db, table, { ...keys, ...columns }, onConflict);
}

/** Sets columns of the rows with these keys. A column that is undefined stays as it is. */
export async function update(
  db: Sql,
  table: string,
  keys: Columns,
  columns: Readonly<Record<string, Value | undefined>>,
): Promise<void> {
  const { values, bind } = bindings();
  const set = Object.entries(columns).flatMap(([column, value]) =>
    value === undefined ? [] : [`${column} = ${bind(value)}`],
  );
  if (set.length === 0) return;
  const found = Object.entries(keys).map(([column, value]) => `${column} = ${bind(value)}`);
  await db.change(`UPDATE ${table} SET ${set.join(", ")} WHERE ${found.join(" AND ")}`, values);
}

/** Deletes the rows with these keys, and returns how many there were. */
export function remove(db: Sql, table: string, keys: Columns): Awaitable<number> {
  const found = Object.keys(keys).map((column, place) => `${column} = $${place + 1}`);
  return db.change(`DELETE FROM ${table} WHERE ${found.join(" AND ")}`, Object.values(keys));
}

/** Deletes up to `most` rows whose time is before another one, and returns how many it deleted. */
export const prune = (db: Sql, table: string, time: string, before: number, most: number) =>
  db.change(
    `DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE ${time} < $1 LIMIT $2)`,
    [before, most],
  );

/** Statements that change conversations, except that they insert one: nobody else sees it yet. */
const CHANGES_CONVERSATION = new RegExp(
  [
    String.raw`\b(UPDATE|DELETE FROM) (conversations|counters)\b|`,
    String.raw`\b(INSERT INTO|UPDATE|DELETE FROM) (component_uses|conversation_changes|elicitations`,
    "|final_departures|former_members|hidden|members|mentions|messages|reactions|tool_calls|turns)",
    String.raw`\b`,
  ].join(""),
);

/** What a statement changes: a conversation, also one that its rows name, or something else. */
export type Effect = "conversation" | "named" | "other";

const effects = new Map<string, Effect>();

export function effectOf(sql: string): Effect {
  let effect = effects.get(sql);
  if (!effect) {
    const isNamed = /\bRETURNING\b.*\bconversation_id\b/s.test(sql);
    effect = !CHANGES_CONVERSATION.test(sql) ? "other" : isNamed ? "named" : "conversation";
    effects.set(sql, effect);
  }
  return effect;
}

export const notStated = (sql: string) =>
  new Error(`a method has not stated which conversation it changes: ${sql}`);

/** Throws if a unit changes a conversation that it does not own. */
export function checkOwned(isOwned: boolean, conversationId: number): void {
  if (isOwned) return;
  throw new Error(`the unit does not own conversation ${conversationId}, which it changes`);
}
