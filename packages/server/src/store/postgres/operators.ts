import type { AccountRecord } from "../accounts.ts";
import type { OperatorReads, OperatorWrites } from "../operators.ts";
import { ACCOUNT } from "../shared/accounts.ts";
import type { Methods } from "./unit.ts";

export const operatorReads: Methods<keyof OperatorReads> = {
  isOperator: async (unit, accountId) =>
    (await unit.get("SELECT 1 FROM operators WHERE account_id = $1", accountId)) !== null,
  operators: (unit) =>
    unit.all<AccountRecord>(
      `SELECT ${ACCOUNT} FROM operators o JOIN accounts a ON a.id = o.account_id
       ORDER BY a.username`,
    ),
};

export const operatorWrites: Methods<keyof OperatorWrites> = {
  addOperator: async (unit, accountId, at) => {
    const added = await unit.write(
      "INSERT INTO operators (account_id, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING",
      accountId,
      at,
    );
    return added.count > 0;
  },
  removeOperator: async (unit, accountId) => {
    const removed = await unit.write("DELETE FROM operators WHERE account_id = $1", accountId);
    return removed.count > 0;
  },
};
