import type { AccountRecord } from "./accounts.ts";
import { ACCOUNT } from "./shared/accounts.ts";
import type { Sql } from "./sql.ts";

/** The people who may call operations of access `operator`. PARLEY_OPERATORS names further ones. */
export const operatorReads = {
  async isOperator(db: Sql, accountId: number): Promise<boolean> {
    return (await db.get("SELECT 1 FROM operators WHERE account_id = $1", accountId)) !== null;
  },
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
  async addOperator(db: Sql, accountId: number, at: number): Promise<boolean> {
    const added = await db.change(
      "INSERT INTO operators (account_id, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING",
      accountId,
      at,
    );
    return added > 0;
  },
  /** Returns false when the account is not an operator. */
  async removeOperator(db: Sql, accountId: number): Promise<boolean> {
    return (await db.change("DELETE FROM operators WHERE account_id = $1", accountId)) > 0;
  },
};
