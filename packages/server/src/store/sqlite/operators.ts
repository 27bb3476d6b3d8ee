import type { AccountRecord } from "../accounts.ts";
import type { OperatorReads, OperatorWrites } from "../operators.ts";
import { ACCOUNT } from "../shared/accounts.ts";
import type { Connection } from "./connection.ts";

export function operatorReads(db: Connection): OperatorReads {
  const byAccount = db.query<object>("SELECT 1 FROM operators WHERE account_id = ?");
  const all = db.query<AccountRecord>(
    `SELECT ${ACCOUNT} FROM operators o CROSS JOIN accounts a ON a.id = o.account_id
     ORDER BY a.username`,
  );
  return {
    isOperator: (accountId) => byAccount.get(accountId) !== null,
    operators: () => all.all(),
  };
}

export function operatorWrites(db: Connection): OperatorWrites {
  const add = db.change(
    "INSERT INTO operators (account_id, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
  );
  const remove = db.change("DELETE FROM operators WHERE account_id = ?");
  return {
    addOperator: (accountId, at) => add.run(accountId, at).changes > 0,
    removeOperator: (accountId) => remove.run(accountId).changes > 0,
  };
}
