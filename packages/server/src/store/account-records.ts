import type { Account } from "@parley/protocol";
import { type AccountRecord, type AccountRow, publicAccount } from "../rules/accounts.ts";
import type { Sql } from "./sql.ts";

const columnsOf = (table: string, columns: readonly string[]) =>
  columns.map((column) => `${table}.${column}`).join(", ");

const COLUMNS = [
  "id",
  "username",
  "kind",
  "display_name",
  "version",
  "owner_id",
  "provider",
  "suspended_at",
  "erased_at",
] as const;

/** Columns of an `AccountRecord`, from a table with the alias `a`. */
export const ACCOUNT = columnsOf("a", COLUMNS);

/** The same columns for RETURNING. */
export const RETURNED_ACCOUNT = columnsOf("accounts", COLUMNS);

const PUBLIC_COLUMNS = ["username", "kind", "display_name", "version", "erased_at"] as const;

type PublicRecord = Pick<AccountRecord, (typeof PUBLIC_COLUMNS)[number]>;

/** Columns of an `AccountRow`, from a table with the alias `a`. */
export const PUBLIC_ACCOUNT = columnsOf("a", PUBLIC_COLUMNS);

/** Columns of a second account in a row. They begin with the alias of its table. */
export type JoinedAccount<Alias extends string> = {
  [Column in keyof PublicRecord as `${Alias}_${Column}`]: PublicRecord[Column];
};

/** Selects the columns of a `JoinedAccount`, and reads it from a row. */
export function joinedAccount<Alias extends string>(alias: Alias) {
  const names = PUBLIC_COLUMNS.map((column) => [column, `${alias}_${column}`] as const);
  return {
    columns: names.map(([column, name]) => `${alias}.${column} AS ${name}`).join(", "),
    of: (row: JoinedAccount<Alias>) => {
      const account: Record<string, unknown> = {};
      for (const [column, name] of names) account[column] = row[name];
      return account as PublicRecord;
    },
  };
}

/** Picks the account from a row that has other columns too. */
export const accountOf = (row: AccountRecord): AccountRecord => ({
  id: row.id,
  username: row.username,
  kind: row.kind,
  display_name: row.display_name,
  version: row.version,
  owner_id: row.owner_id,
  provider: row.provider,
  suspended_at: row.suspended_at,
  erased_at: row.erased_at,
});

/** The same, and the other columns. */
export function splitAccount<Row extends AccountRecord>(row: Row) {
  const { id, username, kind, display_name, version, ...others } = row;
  const { owner_id, provider, suspended_at, erased_at, ...rest } = others;
  const account = { id, username, kind, display_name, version };
  return [{ ...account, owner_id, provider, suspended_at, erased_at }, rest] as const;
}

/** Accounts as all viewers see them, by id. */
export async function accountsById(db: Sql, ids: readonly number[]): Promise<Map<number, Account>> {
  if (ids.length === 0) return new Map();
  const rows = await db.all<AccountRow & { id: number }>(
    `SELECT a.id, ${PUBLIC_ACCOUNT} FROM accounts a WHERE a.id = ANY($1::bigint[])`,
    [db.list(ids)],
  );
  return new Map(rows.map((row) => [row.id, publicAccount(row)]));
}
