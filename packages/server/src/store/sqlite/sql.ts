import {
  type Bound,
  type Effect,
  effectOf,
  type IndexedMessage,
  notStated,
  type OwnedTable,
  type Place,
  type Sql,
  type Statement,
  type Value,
  type Values,
} from "../sql.ts";
import type { Binding, Connection } from "./connection.ts";
import { compiled, usesNow } from "./dialect.ts";

/** Makes the port for a call of a method. The connection runs one unit at a time. */
export function portOf(connection: Connection): () => Sql {
  const statements: Statements = new Map();
  return () => new Call(connection, statements);
}

/** What is made of the statements of the calls on a connection: there are some hundred. */
type Statements = Map<Statement, Prepared>;

interface Prepared {
  readonly sql: string;
  readonly effect: Effect;
  /** Whether the current time is its last parameter. */
  readonly isTimed: boolean;
  readonly statement: ReturnType<Connection["prepare"]>;
}

class Call implements Sql {
  private readonly connection: Connection;
  private readonly statements: Statements;
  /** Whether the method has stated what it changes. */
  private isStated = false;

  constructor(connection: Connection, statements: Statements) {
    this.connection = connection;
    this.statements = statements;
  }

  all<Row>(sql: Statement, values: Values = NONE): Row[] {
    const prepared = this.prepared(sql);
    return prepared.statement.all(...bound(prepared, values));
  }

  get<Row>(sql: Statement, values: Values = NONE): Row | null {
    const prepared = this.prepared(sql);
    return prepared.statement.get(...bound(prepared, values));
  }

  change(sql: Statement, values: Values = NONE): number {
    const prepared = this.prepared(sql);
    if (prepared.effect !== "other") this.check(prepared);
    const { changes } = prepared.statement.run(...bound(prepared, values));
    if (changes > 0) this.connection.wrote = true;
    return changes;
  }

  changed<Row>(sql: Statement, values: Values = NONE): Row[] {
    const prepared = this.prepared(sql);
    if (prepared.effect === "conversation") this.check(prepared);
    const rows: { conversation_id: number }[] = prepared.statement.all(...bound(prepared, values));
    if (rows.length > 0) this.connection.wrote = true;
    if (prepared.effect === "named") {
      for (const { conversation_id } of rows) this.changes(conversation_id);
    }
    return rows as Row[];
  }

  private prepared(statement: Statement): Prepared {
    let found = this.statements.get(statement);
    if (!found) {
      const sql = compiled(statement);
      const isTimed = usesNow(statement);
      found = { sql, effect: effectOf(sql), isTimed, statement: this.connection.prepare(sql) };
      this.statements.set(statement, found);
    }
    return found;
  }

  private check({ sql }: Prepared): void {
    if (!this.isStated) throw notStated(sql);
  }

  own(conversationId: number): void {
    this.isStated = true;
    this.connection.own(conversationId);
  }

  getOwned<Row extends Place>(_place: string, sql: string, value: Value): Row | null {
    const row = this.get<Row>(sql, [value]);
    if (row) this.own(row.conversation_id);
    return row;
  }

  ownFree(conversationIds: readonly number[]): number[] {
    for (const id of conversationIds) this.own(id);
    return [...conversationIds];
  }

  changes(conversationId: number): void {
    this.isStated = true;
    this.connection.changes(conversationId);
  }

  changesUnowned(): void {
    this.isStated = true;
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
  (isTimed ? [...values, Date.now()] : values) as Binding[];

/** The methods with a port for each call as first argument. */
export const bind = <Methods extends object>(methods: Methods, port: () => Sql) =>
  Object.fromEntries(
    Object.entries(methods).map(([name, method]) => [
      name,
      (...values: unknown[]) => method(port(), ...values),
    ]),
  ) as Bound<Methods>;

/** A connection on which a method states what it changes, as on the port. */
export interface CheckedConnection extends Connection {
  changesUnowned(): void;
}

/** Methods that prepare their statements once, checked in the same way: none is interrupted. */
export function hot<Methods extends object>(
  make: (db: CheckedConnection) => Methods,
  connection: Connection,
): Methods {
  let isStated = false;
  const methods = make({
    ...connection,
    own: (conversationId) => {
      isStated = true;
      connection.own(conversationId);
    },
    changes: (conversationId) => {
      isStated = true;
      connection.changes(conversationId);
    },
    changesUnowned: () => {
      isStated = true;
    },
    change: (sql) => {
      const check = () => {
        if (!isStated) throw notStated(sql);
      };
      return connection.change(sql, effectOf(sql) === "other" ? undefined : check);
    },
  });
  return Object.fromEntries(
    Object.entries(methods).map(([name, method]) => [
      name,
      (...values: never[]) => {
        isStated = false;
        return method(...values);
      },
    ]),
  ) as Methods;
}
