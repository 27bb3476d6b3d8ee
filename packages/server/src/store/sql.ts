import type { Awaitable } from "./awaitable.ts";

/** A list is passed for `= ANY(${ids}::bigint[])` and `unnest(${names}::text[])`. */
type List = readonly (number | string | null)[];

export type Value = string | number | boolean | null | Json | List;

/** An object or a list that is stored as JSON, or that a statement reads as JSON: see `json`. */
export class Json {
  readonly value: object;
  constructor(value: object) {
    this.value = value;
  }
}

export const json = (value: object | null | undefined) => (value ? new Json(value) : null);

/** A part of a statement, made by `sql`, with values and other parts in it. */
export class Fragment {
  /** The pieces between its parts, or a text that has `?` in their places. It identifies the text. */
  readonly text: TemplateStringsArray | string;
  readonly parts: readonly Part[];
  constructor(text: TemplateStringsArray | string, parts: readonly Part[] = []) {
    this.text = text;
    this.parts = parts;
  }
}

/** What the dialects write in different ways. */
export interface Either {
  readonly postgres: Fragment;
  readonly sqlite: Fragment;
}

/** A function is called for the value each time the statement runs. */
export type Part = Value | Fragment | Either | (() => number);

/** What a tag of a template gets. */
export type Template = [text: TemplateStringsArray, ...parts: Part[]];

/**
 * A fragment in PostgreSQL's dialect, which SQLite's side rewrites (see `sqlite/dialect.ts`). Fragments
 * and constants of `raw` become part of the text, other values its parameters.
 */
export const sql = (text: TemplateStringsArray, ...parts: Part[]) => new Fragment(text, parts);

/**
 * A name or a number that is part of the text. There are few for each place: both sides keep what they
 * prepare.
 */
export const raw = (text: string | number) => new Fragment(`${text}`);

/**
 * The current time in milliseconds, in a statement. PostgreSQL takes its own clock, the only one that all
 * nodes share; SQLite's side passes that of this process.
 */
export const NOW: Either = {
  postgres: sql`(extract(epoch FROM clock_timestamp()) * 1000)::bigint`,
  sqlite: sql`${() => Date.now()}`,
};

/**
 * How the methods of the store run statements in a unit of work: `all`, `get` and others are tags of
 * templates in PostgreSQL's dialect, like `sql`. SQLite answers synchronously, PostgreSQL in the order of
 * the calls: what needs an earlier result awaits it.
 */
export abstract class Sql {
  abstract all<Row>(...statement: Template): Awaitable<Row[]>;
  /** The first row. */
  abstract get<Row>(...statement: Template): Awaitable<Row | null>;
  /** Runs a statement that changes something, and returns the number of changed rows. */
  abstract change(...statement: Template): Awaitable<number>;
  /**
   * The rows that a statement with RETURNING has changed. The method has stated that it changes the
   * conversations whose ids they have as `conversation_id`.
   */
  abstract changed<Row>(...statement: Template): Awaitable<Row[]>;
  /**
   * Owns a conversation: no other unit, on any node, changes it until this unit ends, and this unit
   * reads its latest state. Units that only read own nothing.
   */
  abstract own(conversationId: number): Awaitable<void>;
  /**
   * The row that `row` finds, whose conversation a write unit owns from then on, and then the turn with
   * an id. `place` finds its `conversation_id` alone.
   */
  abstract getOwned(place: Fragment, row: Fragment, turnId?: number): Awaitable<Place | null>;
  /** Owns the conversations among these that no other unit owns now, and returns their ids. */
  abstract ownFree(conversationIds: readonly number[]): Awaitable<number[]>;
  /**
   * States that this method changes a conversation. Throws if the unit does not own it. A method that
   * has not stated it, and owns no conversation itself, cannot run a statement that changes one.
   */
  abstract changes(conversationId: number): void;
  /** States that this method needs to own no conversation: no other unit decides by what it changes. */
  abstract changesUnowned(): void;
  /**
   * Owns a turn, an account (the spending of an agent, the own counter and the sessions of a person) or
   * the counter of names. A unit owns them in this order, after the conversation.
   */
  abstract ownRow(table: OwnedTable, id: number): Awaitable<void>;
  /** Makes search find a message by this text; null if it shall not be found any more. */
  abstract index(message: IndexedMessage, text: string | null): Awaitable<void>;

  /** The rows, each converted. */
  allAs<Row, Result>(to: (row: Row) => Result) {
    return async (...statement: Template): Promise<Result[]> =>
      (await this.all<Row>(...statement)).map(to);
  }

  /** The first row, converted. */
  getAs<Row, Result>(to: (row: Row) => Result) {
    return async (...statement: Template): Promise<Result | null> => {
      const row = await this.get<Row>(...statement);
      return row && to(row);
    };
  }

  /** Whether a statement finds a row. */
  async exists(...statement: Template): Promise<boolean> {
    return (await this.get(...statement)) !== null;
  }

  /** The values of the only column that a statement selects. */
  column<Each>(...statement: Template): Promise<Each[]> {
    return this.allAs(onlyValue<Each>)(...statement);
  }

  /** The value of the only column in the first row; null if there is no row. */
  firstValue<Each>(...statement: Template): Promise<Each | null> {
    return this.getAs(onlyValue<Each>)(...statement);
  }

  /** The number in the only column of the first row; zero if there is no row, or it is null. */
  async firstNumber(...statement: Template): Promise<number> {
    return (await this.firstValue<number>(...statement)) ?? 0;
  }

  /** Runs a statement that changes something, and returns whether it did. */
  async hasChanged(...statement: Template): Promise<boolean> {
    return (await this.change(...statement)) > 0;
  }

  /** Inserts a row with these columns. Returns how many it inserted: none if there is a conflict. */
  insert(table: string, row: Columns, onConflict = ""): Awaitable<number> {
    const columns = Object.keys(row);
    const text = `INSERT INTO ${table} (${columns.join(", ")})
      VALUES (${columns.map(() => "?").join(", ")}) ${onConflict}`;
    return this.change`${new Fragment(text, Object.values(row))}`;
  }

  /** Inserts a row unless there is one that it conflicts with. Returns whether it did. */
  async insertNew(table: string, row: Columns): Promise<boolean> {
    return (await this.insert(table, row, "ON CONFLICT DO NOTHING")) > 0;
  }

  /** Inserts a row, or sets these columns of the row with the same keys. */
  async upsert(table: string, keys: Columns, columns: Columns): Promise<void> {
    const set = Object.keys(columns).map((column) => `${column} = excluded.${column}`);
    const onConflict = `ON CONFLICT (${Object.keys(keys).join(", ")}) DO UPDATE SET ${set.join(", ")}`;
    await this.insert(table, { ...keys, ...columns }, onConflict);
  }

  /** Sets columns of the rows with these keys. A column that is undefined stays as it is. */
  async update(table: string, keys: Columns, columns: Given): Promise<void> {
    const set = joined(columns, ", ", " = ?");
    if (set.parts.length === 0) return;
    await this.change`UPDATE ${raw(table)} SET ${set} WHERE ${joined(keys, " AND ", " = ?")}`;
  }

  /** Deletes the rows with these keys, and returns how many there were. */
  remove(table: string, keys: Columns): Awaitable<number> {
    return this.change`DELETE FROM ${raw(table)} WHERE ${joined(keys, " AND ", " = ?")}`;
  }

  /** Deletes up to `most` rows whose time is before another one, and returns how many it deleted. */
  prune(table: string, time: string, before: number, most: number): Awaitable<number> {
    const found = sql`SELECT id FROM ${raw(table)} WHERE ${raw(time)} < ${before} LIMIT ${most}`;
    return this.change`DELETE FROM ${raw(table)} WHERE id IN (${found})`;
  }
}

const onlyValue = <Each>(row: Record<string, Each>) => Object.values(row)[0] as Each;

/** Values by their columns. */
type Columns = Readonly<Record<string, Value>>;

/** Values by their columns or conditions, those that are undefined left out. */
type Given = Readonly<Record<string, Value | undefined>>;

/** The texts among these whose value is given. One without `?` has none. */
function joined(given: Given, by: string, end = ""): Fragment {
  const texts: string[] = [];
  const values: Value[] = [];
  for (const [start, value] of Object.entries(given)) {
    if (value === undefined) continue;
    const text = `${start}${end}`;
    texts.push(text);
    if (text.includes("?")) values.push(value);
  }
  return new Fragment(texts.join(by), values);
}

/**
 * The conditions among these whose value is given, `?` in their place: a statement that has no others
 * uses an index.
 */
export const given = (conditions: Given): Fragment =>
  joined({ true: null, ...conditions }, " AND ");

/** How a dialect makes statements of templates. */
export interface Dialect<Prepared> {
  readonly name: keyof Either;
  /** The form in which its driver takes a list, or an object or a list as JSON. */
  encode(value: Json | List): unknown;
  /** Prepares a statement, with `$1` for the first of its values. */
  prepare(text: string): Prepared;
}

/** Statements whose templates begin in the same way. */
interface Branch<Prepared> {
  /** What follows, by the text of the next fragment and the number of values before it. */
  readonly next: Map<Fragment["text"], Branch<Prepared>>[];
  prepared: Prepared | null;
}

/**
 * Returns a function that finds what is prepared of a statement, and adds its values to a list. The text
 * of a statement is made once, however often it runs: it is found by the identity of its templates.
 */
export function preparing<Prepared>({ name, encode, prepare }: Dialect<Prepared>) {
  const root: Branch<Prepared> = { next: [], prepared: null };

  function follow(
    from: Branch<Prepared>,
    { text, parts }: Fragment,
    values: unknown[],
  ): Branch<Prepared> {
    let branches = from.next[values.length];
    if (!branches) {
      branches = new Map();
      from.next[values.length] = branches;
    }
    let found = branches.get(text);
    if (!found) {
      found = { next: [], prepared: null };
      branches.set(text, found);
    }
    for (const part of parts) {
      if (typeof part === "function") values.push(part());
      else if (typeof part !== "object" || part === null) values.push(part);
      else {
        const fragment = fragmentOf(part, name);
        if (fragment) found = follow(found, fragment, values);
        else values.push(encode(part as Json | List));
      }
    }
    return found;
  }

  return (statement: Fragment, values: unknown[]): Prepared => {
    const found = follow(root, statement, values);
    found.prepared ??= prepare(textOf(statement, name));
    return found.prepared;
  };
}

function fragmentOf(part: Part, dialect: keyof Either): Fragment | null {
  if (part instanceof Fragment) return part;
  if (typeof part !== "object" || part === null) return null;
  return "postgres" in part ? part[dialect] : null;
}

function textOf(statement: Fragment, dialect: keyof Either): string {
  let values = 0;
  const written = ({ text, parts }: Fragment): string => {
    const pieces = typeof text === "string" ? text.split("?") : text;
    const rest = parts.map((part, place) => {
      const fragment = fragmentOf(part, dialect);
      return `${fragment ? written(fragment) : `$${++values}`}${pieces[place + 1]}`;
    });
    return `${pieces[0]}${rest.join("")}`;
  };
  // A template may begin in a line of its own.
  return written(statement).trim();
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

export function effectOf(text: string): Effect {
  if (!CHANGES_CONVERSATION.test(text)) return "other";
  return /\bRETURNING\b.*\bconversation_id\b/s.test(text) ? "named" : "conversation";
}

export const notStated = (sql: string) =>
  new Error(`a method has not stated which conversation it changes: ${sql}`);

/** Throws if a unit changes a conversation that it does not own. */
export function checkOwned(isOwned: boolean, conversationId: number): void {
  if (isOwned) return;
  throw new Error(`the unit does not own conversation ${conversationId}, which it changes`);
}
