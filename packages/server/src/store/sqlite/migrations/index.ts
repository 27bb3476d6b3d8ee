import type { Database } from "bun:sqlite";
import { accountNames } from "../../account-names.ts";
import { type Migration, newestSchema } from "../../migrations.ts";
import { SCHEMA } from "./0.1.0.ts";
import { STEP } from "./0.2.0.ts";

export const migrations: readonly Migration<Database>[] = [
  { schema: 1, sql: SCHEMA },
  { schema: 54, sql: STEP, finish: indexAccounts },
];

/** The schema that this version of the server uses. */
export const NEWEST_SCHEMA = newestSchema(migrations);

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
