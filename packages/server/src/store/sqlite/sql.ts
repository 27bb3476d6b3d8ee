import {
  type Bound,
  type Effect,
  effectOf,
  type IndexedMessage,
  notStated,
  type OwnedTable,
  type Sql,
  type Statement,
  type Value,
} from "../sql.ts";
import type { Binding, Connection, ReadStatement, WriteStatement } from "./connection.ts";
import { compiled, usesNow } from "./dialect.ts";

/** What the calls on a connection share. */
interface Prepared {
  readonly connection: Connection;
  query(statement: Statement): ReadStatement<never>;
  change(statement: Statement): PreparedChange;
}

interface PreparedChange extends WriteStatement<never> {
  readonly effect: Effect;
}

/** Makes the port for a call of a method. The connection runs one unit at a time. */
export function portOf(connection: Connection): () => Sql {
  const shared: Prepared = {
    connection,
    query: prepared((sql) => connection.query<never>(sql)),
    change: prepared((sql) => ({
      ...connection.change<never>(sql),
      effect: effectOf(sql),
    })),
  };
  return () => new Call(shared);
}

class Call implements Sql {
  private readonly shared: Prepared;
  /** Whether the method has stated what it changes. */
  private isStated = false;

  constructor(shared: Prepared) {
    this.shared = shared;
  }

  all<Row>(sql: Statement, ...values: Value[]): Row[] {
    return this.shared.query(sql).all(...(values as Binding[]));
  }

  get<Row>(sql: Statement, ...values: Value[]): Row | null {
    return this.shared.query(sql).get(...(values as Binding[]));
  }

  change(sql: Statement, ...values: Value[]): number {
    return this.changing(sql).run(...(values as Binding[])).changes;
  }

  changed<Row>(sql: Statement, ...values: Value[]): Row[] {
    const statement = this.shared.change(sql);
    if (statement.effect !== "named") return this.changing(sql).all(...(values as Binding[]));
    const rows: { conversation_id: number }[] = statement.all(...(values as Binding[]));
    for (const { conversation_id } of rows) this.changes(conversation_id);
    return rows as Row[];
  }

  private changing(sql: Statement): PreparedChange {
    const statement = this.shared.change(sql);
    if (statement.effect !== "other" && !this.isStated) throw notStated(compiled(sql));
    return statement;
  }

  own(conversationId: number): void {
    this.isStated = true;
    this.shared.connection.own(conversationId);
  }

  ownOf(sql: string, value: Value): boolean {
    this.isStated = true;
    const found = this.get<{ id: number }>(sql, value);
    if (found) this.shared.connection.own(found.id);
    return found !== null;
  }

  ownFree(conversationIds: readonly number[]): number[] {
    for (const id of conversationIds) this.own(id);
    return [...conversationIds];
  }

  changes(conversationId: number): void {
    this.isStated = true;
    this.shared.connection.changes(conversationId);
  }

  changesUnowned(): void {
    this.isStated = true;
  }

  ownRow(_table: OwnedTable, _id: number): void {
    // The unit that runs is the only one.
  }

  /** The indexer reads the text itself. */
  index({ id }: IndexedMessage): void {
    this.shared.change("INSERT INTO search_changes (message_id) VALUES ($1)").run(id);
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

/** Keeps what is made of a statement: there are some hundred. */
function prepared<Made extends object>(
  make: (sql: string) => Made,
): (statement: Statement) => Made {
  const made = new Map<Statement, Made>();
  return (statement) => {
    let found = made.get(statement);
    if (!found) {
      found = make(compiled(statement));
      if (usesNow(statement)) found = withNow(found);
      made.set(statement, found);
    }
    return found;
  };
}

/** Adds the current time to the values that the methods of a statement are given. */
const withNow = <Made extends object>(statement: Made) =>
  Object.fromEntries(
    Object.entries(statement).map(([name, member]) => [
      name,
      typeof member === "function"
        ? (...values: Binding[]) => member(...values, Date.now())
        : member,
    ]),
  ) as Made;

/** The methods with a port for each call as first argument. */
export const bind = <Methods extends object>(methods: Methods, port: () => Sql) =>
  Object.fromEntries(
    Object.entries(methods).map(([name, method]) => [
      name,
      (...values: Value[]) => method(port(), ...values),
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
