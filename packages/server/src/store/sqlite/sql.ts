import type { Database, SQLQueryBindings } from "bun:sqlite";
import type { Awaitable } from "../awaitable.ts";
import {
  type Bound,
  checkOwned,
  type Effect,
  effectOf,
  type IndexedMessage,
  notStated,
  type OwnedTable,
  type Place,
  type Sql,
  type Statement,
  type Values,
} from "../sql.ts";
import type { WriteTx } from "../store.ts";
import { compiled, usesNow } from "./dialect.ts";
import { KnownConversations } from "./known-conversations.ts";

type Bindings = SQLQueryBindings[];

/** What is made of a statement, of which there are some hundred. */
interface Prepared {
  readonly sql: string;
  readonly effect: Effect;
  /** Whether it changes what `KnownConversations` has. */
  readonly isKnown: boolean;
  /** Whether it names a table whose rows `later` sets. */
  readonly needsRows: boolean;
  /** Whether the current time is its last parameter. */
  readonly isTimed: boolean;
  readonly statement: ReturnType<Database["query"]>;
}

const CHANGES_KNOWN =
  /\b(UPDATE (conversations|counters)|(INSERT INTO|DELETE FROM) (members|blocks))\b/;
const SET_LATER = /\b(counters|members)\b/;

/** A connection, and the unit of work that runs on it. It runs one unit at a time. */
export class Connection {
  /** Whether the unit has written anything. */
  wrote = false;
  /** Null on a connection that only reads. */
  readonly known: KnownConversations | null;
  readonly #db: Database;
  readonly #begin: ReturnType<Database["query"]>;
  readonly #dataVersion: ReturnType<Database["query"]>;
  readonly #owned = new Set<number>();
  readonly #statements = new Map<Statement, Prepared>();
  readonly #later = new Map<string, { readonly statement: Statement; readonly values: Values }>();
  #version: unknown;

  constructor(db: Database, { readOnly = false } = {}) {
    this.#db = db;
    this.#begin = db.query("BEGIN IMMEDIATE");
    this.#dataVersion = db.query("PRAGMA data_version");
    this.known = readOnly ? null : new KnownConversations();
  }

  /** Begins a transaction, which may follow one of another process. */
  beginTransaction(): void {
    this.#begin.run();
    const [version] = this.#dataVersion.values()[0] ?? [];
    if (version !== this.#version) this.known?.clear();
    this.#version = version;
  }

  /** Begins a unit, which has written nothing and owns no conversation. */
  begin(): void {
    this.wrote = false;
    this.#owned.clear();
  }

  /**
   * Sets a row of `counters` or `members` before the next statement that names its table, and at the
   * latest when the transaction ends: once for all units that set it. The last values count.
   */
  later(row: string, statement: Statement, values: Values): void {
    this.#later.set(row, { statement, values });
  }

  /** Sets the rows that are still to be set. */
  flush(): void {
    for (const { statement, values } of this.#later.values()) {
      this.#find(statement).statement.run(...(values as Bindings));
    }
    this.#later.clear();
  }

  /** Undoes the transaction, unless SQLite has done it. */
  rollBack(): void {
    this.#forget();
    if (this.#db.inTransaction) this.#db.run("ROLLBACK");
  }

  /** Undoes the unit, which began with a savepoint of this name. */
  rollBackTo(savepoint: string): void {
    this.#forget();
    this.#db.run(`ROLLBACK TO ${savepoint}`);
  }

  #forget(): void {
    this.known?.clear();
    this.#later.clear();
  }

  /** The unit owns the conversation: it is the only one that runs. Units that only read own nothing. */
  own(conversationId: number): void {
    if (this.known) this.#owned.add(conversationId);
  }

  /** Throws if the unit does not own the conversation. */
  changes(conversationId: number): void {
    checkOwned(this.#owned.has(conversationId), conversationId);
  }

  prepared(statement: Statement): Prepared {
    const found = this.#find(statement);
    if (found.needsRows) this.flush();
    return found;
  }

  #find(statement: Statement): Prepared {
    let found = this.#statements.get(statement);
    if (!found) {
      const sql = compiled(statement);
      found = {
        sql,
        effect: effectOf(sql),
        isKnown: CHANGES_KNOWN.test(sql),
        needsRows: SET_LATER.test(sql),
        isTimed: usesNow(statement),
        statement: this.#db.query(sql),
      };
      this.#statements.set(statement, found);
    }
    return found;
  }
}

/** Makes the port for a call of a method. */
export const portOf = (connection: Connection) => () => new Port(connection);

export class Port implements Sql {
  private readonly connection: Connection;
  /** The conversation that the method has stated to change; null: several, or none that is owned. */
  private stated: number | null | undefined;

  constructor(connection: Connection) {
    this.connection = connection;
  }

  get known(): KnownConversations | null {
    return this.connection.known;
  }

  all<Row>(sql: Statement, values: Values = NONE): Row[] {
    const prepared = this.connection.prepared(sql);
    return prepared.statement.all(...bound(prepared, values)) as Row[];
  }

  get<Row>(sql: Statement, values: Values = NONE): Row | null {
    const prepared = this.connection.prepared(sql);
    return prepared.statement.get(...bound(prepared, values)) as Row | null;
  }

  change(sql: Statement, values: Values = NONE): number {
    const prepared = this.connection.prepared(sql);
    if (prepared.effect !== "other") this.check(prepared);
    const { changes } = prepared.statement.run(...bound(prepared, values));
    if (changes > 0) this.connection.wrote = true;
    if (prepared.isKnown) this.known?.drop(this.stated ?? null);
    return changes;
  }

  /** Sets a row as `Connection.later` does. The caller keeps `known` up to date. */
  later(row: string, sql: Statement, values: Values): void {
    this.connection.later(row, sql, values);
  }

  changed<Row>(sql: Statement, values: Values = NONE): Row[] {
    const prepared = this.connection.prepared(sql);
    if (prepared.effect === "conversation") this.check(prepared);
    const rows = this.all<{ conversation_id: number }>(sql, values);
    if (rows.length > 0) this.connection.wrote = true;
    if (prepared.effect === "named") {
      for (const { conversation_id } of rows) this.changes(conversation_id);
    }
    if (prepared.isKnown) this.known?.drop(this.stated ?? null);
    return rows as Row[];
  }

  private check({ sql }: Prepared): void {
    if (this.stated === undefined) throw notStated(sql);
  }

  private state(conversationId: number): void {
    const isOnly = this.stated === undefined || this.stated === conversationId;
    this.stated = isOnly ? conversationId : null;
  }

  own(conversationId: number): void {
    this.state(conversationId);
    this.connection.own(conversationId);
  }

  getOwned(_place: string, sql: string, value: Values[number]): Place | null {
    const row = this.get<Place>(sql, [value]);
    if (row) this.own(row.conversation_id);
    return row;
  }

  ownFree(conversationIds: readonly number[]): number[] {
    for (const id of conversationIds) this.own(id);
    return [...conversationIds];
  }

  changes(conversationId: number): void {
    this.state(conversationId);
    this.connection.changes(conversationId);
  }

  changesUnowned(): void {
    this.stated = null;
  }

  ownRow(_table: OwnedTable, _id: number): void {
    // The unit that runs is the only one.
  }

  /** The indexer reads the text itself. */
  index({ id }: IndexedMessage): void {
    this.change("INSERT INTO search_changes (message_id) VALUES ($1)", [id]);
  }

  list(values: readonly (number | string | null)[]): string {
    return JSON.stringify(values);
  }

  json(value: object): string;
  json(value: object | null | undefined): string | null;
  json(value: object | null | undefined): string | null {
    return value ? JSON.stringify(value) : null;
  }
}

const NONE: Values = [];

const bound = ({ isTimed }: Prepared, values: Values) =>
  (isTimed ? [...values, Date.now()] : values) as Bindings;

/** Methods of the store's interface that take the port as their first argument. */
export type Methods<Names extends keyof WriteTx> = {
  [Name in Names]: WriteTx[Name] extends (...values: infer Values) => infer Result
    ? (db: Port, ...values: Values) => Awaitable<Awaited<Result>>
    : never;
};

/** The methods with a port for each call as first argument. */
export const bind = <Methods extends object>(methods: Methods, port: () => Port) =>
  Object.fromEntries(
    Object.entries(methods).map(([name, method]) => [
      name,
      (...values: unknown[]) => method(port(), ...values),
    ]),
  ) as Bound<Methods>;
