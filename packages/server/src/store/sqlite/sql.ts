import type { Bound, Sql, Statement, Value } from "../sql.ts";
import type { Binding, Connection } from "./connection.ts";
import { compiled, usesNow } from "./dialect.ts";

/** The port on a connection to SQLite, which runs one unit at a time. */
export function sqlOf(connection: Connection): Sql {
  const queries = prepared((sql) => connection.query<never>(sql));
  const changes = prepared((sql) => connection.change<never>(sql));
  const changed = connection.change("INSERT INTO search_changes (message_id) VALUES (?)");
  return {
    all: (sql, ...values) => queries(sql).all(...(values as Binding[])),
    get: (sql, ...values) => queries(sql).get(...(values as Binding[])),
    change: (sql, ...values) => changes(sql).run(...(values as Binding[])).changes,
    changed: (sql, ...values) => changes(sql).all(...(values as Binding[])),
    own: connection.own,
    ownOf: (sql, value) => {
      const found = queries(sql).get(value as Binding) as { id: number } | null;
      if (found) connection.own(found.id);
      return found !== null;
    },
    ownFree: (conversationIds) => {
      for (const id of conversationIds) connection.own(id);
      return [...conversationIds];
    },
    changes: connection.changes,
    ownRow: () => {},
    // The indexer reads the text itself.
    index: ({ id }) => void changed.run(id),
    list: (values) => JSON.stringify(values),
    json: ((value: object | null | undefined) =>
      value ? JSON.stringify(value) : null) as Sql["json"],
  };
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
    Object.entries(statement).map(([name, run]) => [
      name,
      (...values: Binding[]) => run(...values, Date.now()),
    ]),
  ) as Made;

/** The methods with the port as first argument. */
export const bind = <Methods extends object>(methods: Methods, db: Sql) =>
  Object.fromEntries(
    Object.entries(methods).map(([name, method]) => [
      name,
      (...values: Value[]) => method(db, ...values),
    ]),
  ) as Bound<Methods>;
