import type { ManagedAccountReads, ManagedAccountWrites } from "../managed-accounts.ts";
import {
  type ManagedAccountRow,
  managedAccountsQuery,
  SET_SUSPENDED,
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
    return (await unit.write(SET_SUSPENDED, accountId, at)).count > 0;
  },
};
