import { ACCOUNT } from "./account-records.ts";
import type { AccountRecord } from "./accounts.ts";
import { exists, hasChanged, insertNew, type Sql } from "./sql.ts";

/** The people who may call operations of access `operator`. PARLEY_OPERATORS names further ones. */
export const operatorReads = {
  isOperator: (db: Sql, accountId: number) =>
    exists(db, "SELECT 1 FROM operators WHERE account_id = $1", [accountId]),
  /** Ordered by username. */
  operators: (db: Sql) =>
    // A cross join keeps SQLite from reading all accounts in the order of usernames.
    db.all<AccountRecord>(
      `SELECT ${ACCOUNT} FROM operators o CROSS JOIN accounts a WHERE a.id = o.account_id
       ORDER BY a.username`,
    ),
};

export const operatorWrites = {
  /** Returns false, and changes nothing, when the account is an operator already. */
  addOperator: (db: Sql, accountId: number, at: number) =>
    insertNew(db, "operators", { account_id: accountId, created_at: at }),
  /** Returns false when the account is not an operator. */
  removeOperator: (db: Sql, accountId: number) =>
    hasChanged(db, "DELETE FROM operators WHERE account_id = $1", [accountId]),
};
