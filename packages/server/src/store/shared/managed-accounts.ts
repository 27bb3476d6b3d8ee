import type { Metadata } from "../accounts.ts";
import type { ManagedAccountQuery, ManagedAccountRecord } from "../managed-accounts.ts";
import { nameRange } from "./account-names.ts";
import { ACCOUNT } from "./accounts.ts";
import { bindings } from "./bindings.ts";
import { decoded } from "./json.ts";

export type ManagedAccountRow = Omit<ManagedAccountRecord, "metadata" | "is_operator"> & {
  metadata: string | Metadata | null;
  is_operator: boolean | number;
};

export const toManagedAccount = (row: ManagedAccountRow): ManagedAccountRecord => ({
  ...row,
  metadata: decoded(row.metadata),
  is_operator: Boolean(row.is_operator),
});

/** Changes nothing if the account is suspended already, or not suspended. */
export const SET_SUSPENDED = `UPDATE accounts SET suspended_at = $2
  WHERE id = $1 AND (suspended_at IS NULL) = (CAST($2 AS bigint) IS NOT NULL)`;

/** The statement of a query and its values. Only given filters are in it, so that it uses an index. */
export function managedAccountsQuery(given: ManagedAccountQuery) {
  const { query, username, suspended, after = "", limit } = given;
  const { values, bind } = bindings();
  const filters = ["a.kind = 'human'", "a.erased_at IS NULL", `a.username > ${bind(after)}`];
  if (username !== undefined) filters.push(`a.username = ${bind(username)}`);
  if (suspended !== undefined) filters.push(`a.suspended_at IS ${suspended ? "NOT " : ""}NULL`);
  if (query !== undefined) filters.push(matches(query, bind));
  const sql = `SELECT ${ACCOUNT}, a.external_id, a.metadata, a.created_at,
      (SELECT max(s.last_used_at) FROM sessions s WHERE s.account_id = a.id) AS last_used_at,
      EXISTS (SELECT 1 FROM operators o WHERE o.account_id = a.id) AS is_operator
    FROM accounts a WHERE ${filters.join(" AND ")} ORDER BY a.username LIMIT ${bind(limit)}`;
  return { sql, values };
}

function matches(query: string, bind: (value: string) => string): string {
  const isNamed = `a.external_id = ${bind(query)}`;
  const range = nameRange({ query, viewerId: 0, limit: 0 });
  if (!range) return isNamed;
  return `(${isNamed} OR a.id IN (SELECT n.account_id FROM account_names n
    WHERE n.name >= ${bind(range.prefix)} AND n.name < ${bind(range.end)}))`;
}
