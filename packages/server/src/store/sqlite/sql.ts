import type { Database, SQLQueryBindings } from "bun:sqlite";
import type { Awaitable } from "../awaitable.ts";
import {
  type Bound,
  checkOwned,
  type Effect,
  effectOf,
  Fragment,
  type IndexedMessage,
  Json,
  notStated,
  type OwnedTable,
  type Part,
  type Place,
  preparing,
  Sql,
} from "../sql.ts";
import type { WriteTx } from "../store.ts";
import { compiled } from "./dialect.ts";
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
  readonly #find: (statement: Fragment, values: Bindings) => Prepared;
  readonly #later = new Map<string, Fragment>();
  #version: unknown;

  constructor(db: Database, { readOnly = false } = {}) {
    this.#db = db;
    this.#begin = db.query("BEGIN IMMEDIATE");
    this.#dataVersion = db.query("PRAGMA data_version");
    this.known = readOnly ? null : new KnownConversations();
    this.#find = preparing<Prepared>({
      name: "sqlite",
      encode: (value) => JSON.stringify(value instanceof Json ? value.value : value),
      prepare: (text) => {
        const sql = compiled(text);
        return {
          sql,
          effect: effectOf(sql),
          isKnown: CHANGES_KNOWN.test(sql),
          needsRows: SET_LATER.test(sql),
          statement: db.query(sql),
        };
      },
    });
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
  later(row: string, statement: Fragment): void {
    this.#later.set(row, statement);
  }

  /** Sets the rows that are still to be set. */
  flush(): void {
    for (const later of this.#later.values()) {
      const values: Bindings = [];
      this.#find(later, values).statement.run(...values);
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

  prepared(text: TemplateStringsArray, parts: readonly Part[], values: Bindings): Prepared {
    const found = this.#find(new Fragment(text, parts), values);
    if (found.needsRows) this.flush();
    return found;
  }
}

/** Makes the port for a call of a method. */
export const portOf = (connection: Connection) => () => new Port(connection);

export class Port extends Sql {
  private readonly connection: Connection;
  /** The conversation that the method has stated to change; null: several, or none that is owned. */
  private stated: number | null | undefined;

  constructor(connection: Connection) {
    super();
    this.connection = connection;
  }

  get known(): KnownConversations | null {
    return this.connection.known;
  }

  override all<Row>(text: TemplateStringsArray, ...parts: Part[]): Row[] {
    const values: Bindings = [];
    return this.connection.prepared(text, parts, values).statement.all(...values) as Row[];
  }

  override get<Row>(text: TemplateStringsArray, ...parts: Part[]): Row | null {
    const values: Bindings = [];
    return this.connection.prepared(text, parts, values).statement.get(...values) as Row | null;
  }

  override change(text: TemplateStringsArray, ...parts: Part[]): number {
    const values: Bindings = [];
    const prepared = this.connection.prepared(text, parts, values);
    if (prepared.effect !== "other") this.check(prepared);
    const { changes } = prepared.statement.run(...values);
    if (changes > 0) this.connection.wrote = true;
    if (prepared.isKnown) this.known?.drop(this.stated ?? null);
    return changes;
  }

  /** Sets a row as `Connection.later` does. The caller keeps `known` up to date. */
  later(row: string, statement: Fragment): void {
    this.connection.later(row, statement);
  }

  override changed<Row>(text: TemplateStringsArray, ...parts: Part[]): Row[] {
    const values: Bindings = [];
    const prepared = this.connection.prepared(text, parts, values);
    if (prepared.effect === "conversation") this.check(prepared);
    const rows = prepared.statement.all(...values) as { conversation_id: number }[];
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

  override own(conversationId: number): void {
    this.state(conversationId);
    this.connection.own(conversationId);
  }

  override getOwned(_place: Fragment, found: Fragment): Place | null {
    const row = this.get<Place>`${found}`;
    if (row) this.own(row.conversation_id);
    return row;
  }

  override ownFree(conversationIds: readonly number[]): number[] {
    for (const id of conversationIds) this.own(id);
    return [...conversationIds];
  }

  override changes(conversationId: number): void {
    this.state(conversationId);
    this.connection.changes(conversationId);
  }

  override changesUnowned(): void {
    this.stated = null;
  }

  override ownRow(_table: OwnedTable, _id: number): void {
    // The unit that runs is the only one.
  }

  /** The indexer reads the text itself. */
  override index({ id }: IndexedMessage): void {
    this.change`INSERT INTO search_changes (message_id) VALUES (${id})`;
  }
}

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
