import type { ManagedAccountReads, ManagedAccountWrites } from "../managed-accounts.ts";
import {
  type ManagedAccountRow,
  managedAccountsQuery,
  SET_SUSPENDED,
  toManagedAccount,
} from "../shared/managed-accounts.ts";
import type { Connection } from "./connection.ts";

export const managedAccountReads = (db: Connection): ManagedAccountReads => ({
  managedAccounts: (query) => {
    const { sql, values } = managedAccountsQuery(query);
    return db
      .query<ManagedAccountRow>(sql)
      .all(...values)
      .map(toManagedAccount);
  },
});

export function managedAccountWrites(db: Connection): ManagedAccountWrites {
  const suspend = db.change(SET_SUSPENDED);
  return { setSuspended: (accountId, at) => suspend.run(accountId, at).changes > 0 };
}
