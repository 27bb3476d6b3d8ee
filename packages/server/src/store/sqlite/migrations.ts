import type { Database } from "bun:sqlite";
import { accountNames } from "../account-names.ts";
import { SCHEMA } from "../migrations/0.1.0.ts";
import { STEP as STEP_0_2 } from "../migrations/0.2.0.ts";
import { STEP as STEP_0_3 } from "../migrations/0.3.0.ts";
import { type Migration, newestSchema, type Text } from "../migrations/index.ts";

export const migrations: readonly Migration<Database>[] = [
  { schema: 1, sql: rewritten(SCHEMA) },
  { schema: 54, sql: rewritten(STEP_0_2), finish: indexAccounts },
  { schema: 55, sql: rewritten(STEP_0_3) },
];

/** The schema that this version of the server uses. */
export const NEWEST_SCHEMA = newestSchema(migrations);

function rewritten(text: Text): string {
  return text((_, sqlite = "") => sqlite)
    .replaceAll(/ COLLATE "C"| GENERATED \w+( DEFAULT)? AS IDENTITY| WITH \(\w+ = \d+\)/g, "")
    .replaceAll(/(?<=\n {2}\w+ |ADD COLUMN \w+ )(bigint|boolean)\b/g, "INTEGER")
    .replaceAll(/(?<=\n {2}\w+ |ADD COLUMN \w+ |\(blob )(text|jsonb|uuid)\b/g, "TEXT")
    .replaceAll(/(?<=(DEFAULT|=) )(true|false)\b/g, (value) => (value === "true" ? "1" : "0"))
    .replaceAll(/CREATE TABLE .*?\)(?=;\n)/gs, (table) =>
      table.includes("INTEGER PRIMARY KEY") ? `${table} STRICT` : `${table} STRICT, WITHOUT ROWID`,
    );
}

/** Indexes the names of accounts, which 0.1.0 did not. */
function indexAccounts(db: Database): void {
  const people = db.prepare<{ id: number; username: string; display_name: string }, []>(
    "SELECT id, username, display_name FROM accounts WHERE kind = 'human'",
  );
  const add = db.query(
    "INSERT INTO account_names (name, username, account_id) SELECT value, ?1, ?2 FROM json_each(?3)",
  );
  for (const { id, username, display_name } of people.iterate()) {
    add.run(username, id, JSON.stringify(accountNames(username, display_name)));
  }
}
