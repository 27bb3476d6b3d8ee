import type { SQL } from "bun";
import { accountNames } from "../account-names.ts";
import { SCHEMA } from "../migrations/0.1.0.ts";
import { STEP } from "../migrations/0.2.0.ts";
import { type Migration, newestSchema, type Text } from "../migrations/index.ts";

/**
 * They use only what compatible distributed databases support too: no extensions, triggers or stored
 * functions. Neither store checks foreign keys: rows that others refer to are never deleted.
 */
export const migrations: readonly Migration<SQL>[] = [
  { schema: 1, sql: rewritten(SCHEMA) },
  { schema: 57, sql: rewritten(STEP), finish: indexAccounts },
];

/** The schema that this version of the server uses. */
export const NEWEST_SCHEMA = newestSchema(migrations);

function rewritten(text: Text): string {
  return text((postgres) => postgres).replaceAll(/ REFERENCES \w+ \(\w+\)/g, "");
}

const INDEXED_AT_ONCE = 1000;

/** Indexes the names of accounts, which 0.1.0 did not. */
async function indexAccounts(tx: SQL): Promise<void> {
  for (let after = 0; ; ) {
    const people: { id: bigint; username: string; display_name: string }[] = await tx.unsafe(
      `SELECT id, username, display_name FROM accounts WHERE kind = 'human' AND id > $1
       ORDER BY id LIMIT ${INDEXED_AT_ONCE}`,
      [after],
    );
    const last = people.at(-1);
    if (!last) return;
    after = Number(last.id);
    const names = people.flatMap(({ id, username, display_name }) =>
      accountNames(username, display_name).map((name) => ({
        name,
        username,
        account_id: Number(id),
      })),
    );
    await tx.unsafe(
      `INSERT INTO account_names (name, username, account_id) SELECT name, username, account_id
       FROM jsonb_to_recordset($1::jsonb) AS n (name text, username text, account_id bigint)`,
      [names],
    );
  }
}
