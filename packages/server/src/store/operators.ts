import { nameRange } from "./account-names.ts";
import { ACCOUNT, type AccountRecord } from "./account-records.ts";
import type { Metadata } from "./accounts.ts";
import { type Fragment, given, reader, type Sql, sql } from "./sql.ts";

/** What operators see of people and of the service, and who they are. PARLEY_OPERATORS names further ones. */
export const operatorReads = {
  isOperator: (db: Sql, accountId: number) =>
    db.exists`SELECT 1 FROM operators WHERE account_id = ${accountId}`,
  /** Ordered by username. */
  operators: (db: Sql) =>
    // A cross join keeps SQLite from reading all accounts in the order of usernames.
    db.all<AccountRecord>`
      SELECT ${ACCOUNT} FROM operators o CROSS JOIN accounts a WHERE a.id = o.account_id
      ORDER BY a.username`,
  /** Ordered by username. */
  managedAccounts(db: Sql, filters: ManagedAccountQuery) {
    const { query, username, suspended, after = "", limit } = filters;
    const where = given({
      "a.username > ?": after,
      "a.username = ?": username,
      [`a.suspended_at IS ${suspended ? "NOT " : ""}NULL`]: suspended,
    });
    return db.allAs(readAccount)`
      SELECT ${ACCOUNT}, a.external_id, a.metadata, a.created_at,
        (SELECT max(s.last_used_at) FROM sessions s WHERE s.account_id = a.id) AS last_used_at,
        EXISTS (SELECT 1 FROM operators o WHERE o.account_id = a.id) AS is_operator
      FROM accounts a WHERE a.kind = 'human' AND a.erased_at IS NULL AND ${where}
        AND ${query === undefined ? sql`true` : matches(query)}
      ORDER BY a.username LIMIT ${limit}`;
  },
  /** People are active if they have used a session since the given times. */
  async statistics(db: Sql, activeSince: { day: number; month: number }): Promise<Statistics> {
    const [row] = await db.all<Statistics>`
      SELECT
        (SELECT count(*) FROM accounts WHERE kind = 'human' AND erased_at IS NULL) AS people,
        (SELECT count(*) FROM accounts
          WHERE suspended_at IS NOT NULL AND erased_at IS NULL) AS suspended,
        (SELECT count(DISTINCT account_id) FROM sessions
          WHERE last_used_at >= ${activeSince.day}) AS active_day,
        (SELECT count(DISTINCT account_id) FROM sessions
          WHERE last_used_at >= ${activeSince.month}) AS active_month,
        (SELECT count(*) FROM conversations) AS conversations,
        (SELECT coalesce(max(id), 0) FROM messages) AS messages,
        (SELECT count(*) FROM turns WHERE status IN ('waiting', 'running')) AS open_turns`;
    return row as Statistics;
  },
};

export const operatorWrites = {
  /** Returns false, and changes nothing, when the account is an operator already. */
  addOperator: (db: Sql, accountId: number, at: number) =>
    db.insertNew("operators", { account_id: accountId, created_at: at }),
  /** Returns false when the account is not an operator. */
  removeOperator: (db: Sql, accountId: number) =>
    db.hasChanged`DELETE FROM operators WHERE account_id = ${accountId}`,
  /** Suspends an account, or with null restores it. Returns false when nothing changed. */
  async setSuspended(db: Sql, accountId: number, at: number | null): Promise<boolean> {
    await db.ownRow("accounts", accountId);
    return db.hasChanged`
      UPDATE accounts SET suspended_at = ${at}
      WHERE id = ${accountId} AND (suspended_at IS NULL) = (CAST(${at} AS bigint) IS NOT NULL)`;
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

const readAccount = reader<ManagedAccountRecord>({ json: ["metadata"], flags: ["is_operator"] });

function matches(query: string): Fragment {
  const isNamed = sql`a.external_id = ${query}`;
  const range = nameRange({ query });
  if (!range) return isNamed;
  return sql`(${isNamed} OR a.id IN (SELECT n.account_id FROM account_names n
    WHERE n.name >= ${range.prefix} AND n.name < ${range.end}))`;
}

export interface Statistics {
  readonly people: number;
  readonly suspended: number;
  readonly active_day: number;
  readonly active_month: number;
  readonly conversations: number;
  /** From the highest id: counting all of them would take long. */
  readonly messages: number;
  /** Turns of agents that wait or run. */
  readonly open_turns: number;
}
