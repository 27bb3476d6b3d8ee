import type { ManagedAccountReads, ManagedAccountWrites } from "../managed-accounts.ts";
import {
  type ManagedAccountRow,
  managedAccountsQuery,
  toManagedAccount,
} from "../shared/managed-accounts.ts";
import type { Methods } from "./unit.ts";

export const managedAccountReads: Methods<keyof ManagedAccountReads> = {
  managedAccounts: async (unit, query) => {
    const { sql, values } = managedAccountsQuery(query);
    return (await unit.all<ManagedAccountRow>(sql, ...values)).map(toManagedAccount);
  },
};

export const managedAccountWrites: Methods<keyof ManagedAccountWrites> = {
  setSuspended: async (unit, accountId, at) => {
    await unit.ownRow("accounts", accountId);
    const changed = await unit.change(
      `UPDATE accounts SET suspended_at = $2::bigint
       WHERE id = $1 AND (suspended_at IS NULL) = ($2::bigint IS NOT NULL)`,
      accountId,
      at,
    );
    return changed.count > 0;
  },
};
