import type { ManagedAccountReads, ManagedAccountWrites } from "../managed-accounts.ts";
import {
  type ManagedAccountRow,
  managedAccountsQuery,
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
  const suspend = db.change(
    "UPDATE accounts SET suspended_at = ?2 WHERE id = ?1 AND (suspended_at IS NULL) = (?2 IS NOT NULL)",
  );
  return { setSuspended: (accountId, at) => suspend.run(accountId, at).changes > 0 };
}
