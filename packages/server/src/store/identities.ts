import { ACCOUNT } from "./account-records.ts";
import type { AccountRecord } from "./accounts.ts";
import { insertNew, type Sql } from "./sql.ts";

/** Links accounts to the subjects of OIDC issuers. */
export const identityReads = {
  /** The account that an OIDC issuer's subject is linked to. */
  identity: (db: Sql, issuer: string, subject: string) =>
    db.get<AccountRecord>(
      `SELECT ${ACCOUNT} FROM identities i JOIN accounts a ON a.id = i.account_id
       WHERE i.issuer = $1 AND i.subject = $2`,
      [issuer, subject],
    ),
  /**
   * The person with that username, if they have neither a password nor an identity, and no product
   * has created them. Earlier versions identified OIDC accounts by username alone.
   */
  unlinkedAccount: (db: Sql, username: string) =>
    db.get<AccountRecord>(
      `SELECT ${ACCOUNT} FROM accounts a
       WHERE a.username = $1 AND a.kind = 'human' AND a.password_hash IS NULL
         AND a.external_id IS NULL AND a.erased_at IS NULL
         AND NOT EXISTS (SELECT 1 FROM identities i WHERE i.account_id = a.id)`,
      [username],
    ),
};

export const identityWrites = {
  /** Returns false, and changes nothing, when the subject is linked to an account already. */
  insertIdentity: (db: Sql, { at, ...identity }: NewIdentity) =>
    insertNew(db, "identities", { ...identity, created_at: at }),
};

export interface NewIdentity {
  issuer: string;
  subject: string;
  account_id: number;
  at: number;
}
