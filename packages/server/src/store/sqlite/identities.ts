import type { AccountRecord } from "../accounts.ts";
import type { IdentityReads, IdentityWrites } from "../identities.ts";
import { IDENTITY, INSERT_IDENTITY, UNLINKED_ACCOUNT } from "../shared/identities.ts";
import type { Connection } from "./connection.ts";

export function identityReads(db: Connection): IdentityReads {
  const byIdentity = db.query<AccountRecord>(IDENTITY);
  const unlinked = db.query<AccountRecord>(UNLINKED_ACCOUNT);
  return {
    identity: (issuer, subject) => byIdentity.get(issuer, subject),
    unlinkedAccount: (username) => unlinked.get(username),
  };
}

export function identityWrites(db: Connection): IdentityWrites {
  const insert = db.change(INSERT_IDENTITY);
  return {
    insertIdentity: ({ issuer, subject, account_id, at }) =>
      insert.run(issuer, subject, account_id, at).changes > 0,
  };
}
