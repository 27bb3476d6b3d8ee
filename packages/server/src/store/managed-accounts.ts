import { nameRange } from "./account-names.ts";
import { ACCOUNT } from "./account-records.ts";
import type { AccountRecord, Metadata } from "./accounts.ts";
import { bindings, decoded, hasChanged, type Sql } from "./sql.ts";

/** Accounts of people as operators see them. */
export const managedAccountReads = {
  /** Ordered by username. */
  async managedAccounts(db: Sql, query: ManagedAccountQuery): Promise<ManagedAccountRecord[]> {
    const { sql, values } = managedAccountsQuery(query);
    return (await db.all<ManagedAccountRow>(sql, values)).map((row) => ({
      ...row,
      metadata: decoded(row.metadata),
      is_operator: Boolean(row.is_operator),
    }));
  },
};

export const managedAccountWrites = {
  /** Suspends an account, or with null restores it. Returns false when nothing changed. */
  async setSuspended(db: Sql, accountId: number, at: number | null): Promise<boolean> {
    await db.ownRow("accounts", accountId);
    return hasChanged(
      db,
      `UPDATE accounts SET suspended_at = $2
       WHERE id = $1 AND (suspended_at IS NULL) = (CAST($2 AS bigint) IS NOT NULL)`,
      [accountId, at],
    );
  },
};

export interface ManagedAccountQuery {
  /** Return only people with a name that begins with it, as in `findAccounts`, or with this external id. */
  query?: string | undefined;
  /** Return only this person. */
  username?: string | undefined;
  /** Return only suspended people, or only others. */
  suspended?: boolean | undefined;
  /** Return only usernames after this one. */
  after?: string | undefined;
  limit: number;
}

export interface ManagedAccountRecord extends AccountRecord {
  readonly external_id: string | null;
  readonly metadata: Metadata | null;
  readonly created_at: number;
  /** When a session of the account was last used. */
  readonly last_used_at: number | null;
  /** Whether `operators` has it. */
  readonly is_operator: boolean;
}

type ManagedAccountRow = Omit<ManagedAccountRecord, "metadata" | "is_operator"> & {
  metadata: string | Metadata | null;
  is_operator: boolean | number;
};

/** The statement of a query and its values. Only given filters are in it, so that it uses an index. */
function managedAccountsQuery(given: ManagedAccountQuery) {
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
  const range = nameRange({ query });
  if (!range) return isNamed;
  return `(${isNamed} OR a.id IN (SELECT n.account_id FROM account_names n
    WHERE n.name >= ${bind(range.prefix)} AND n.name < ${bind(range.end)}))`;
}
