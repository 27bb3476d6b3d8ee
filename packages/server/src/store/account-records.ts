import type { Account } from "@parley/protocol";
import { type AccountRecord, type AccountRow, publicAccount } from "../rules/accounts.ts";
import { raw, type Sql, sql, type Value } from "./sql.ts";

export type { AccountRecord };

const PUBLIC_COLUMNS = ["username", "kind", "display_name", "version", "erased_at"] as const;
const COLUMNS = [...PUBLIC_COLUMNS, "id", "owner_id", "provider", "suspended_at"] as const;

/** Selects columns of a table with an alias; with a `field`, such that `reader` makes an object of them. */
const select = (columns: readonly string[], alias: string, field?: string) =>
  raw(
    columns
      .map((column) => `${alias}.${column}${field ? ` AS "${field}.${column}"` : ""}`)
      .join(", "),
  );

/** Columns of an `AccountRecord`, from a table with the alias `a`. */
export const ACCOUNT = select(COLUMNS, "a");

export const ACCOUNTS = sql`SELECT ${ACCOUNT} FROM accounts a`;

/** The same columns for RETURNING. */
export const RETURNED_ACCOUNT = raw(COLUMNS.join(", "));

/** Columns of an `AccountRecord` that `reader` makes a field of. */
export const accountAs = (field: string, alias = "a") => select(COLUMNS, alias, field);

/** Columns of an `AccountRow`, from a table with the alias `a`. */
export const PUBLIC_ACCOUNT = select(PUBLIC_COLUMNS, "a");

/** Columns of an `AccountRow` that `reader` makes a field of. */
export const publicAccountAs = (field: string, alias = "a") => select(PUBLIC_COLUMNS, alias, field);

/** Sets columns of an account, which the unit owns from then on. */
export async function changeAccount(db: Sql, id: number, columns: Record<string, Value>) {
  await db.ownRow("accounts", id);
  await db.update("accounts", { id }, columns);
}

/** Accounts as all viewers see them, by id. */
export async function accountsById(db: Sql, ids: readonly number[]): Promise<Map<number, Account>> {
  if (ids.length === 0) return new Map();
  const rows = await db.all<AccountRow & { id: number }>`
    SELECT a.id, ${PUBLIC_ACCOUNT} FROM accounts a WHERE a.id = ANY(${ids}::bigint[])`;
  return new Map(rows.map((row) => [row.id, publicAccount(row)]));
}
