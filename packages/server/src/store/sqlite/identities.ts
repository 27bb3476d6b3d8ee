import type { AccountRecord } from "../accounts.ts";
import type { IdentityReads, IdentityWrites } from "../identities.ts";
import { ACCOUNT } from "../shared/accounts.ts";
import type { Connection } from "./connection.ts";

export function identityReads(db: Connection): IdentityReads {
  const byIdentity = db.query<AccountRecord>(
    `SELECT ${ACCOUNT} FROM identities i JOIN accounts a ON a.id = i.account_id
     WHERE i.issuer = ? AND i.subject = ?`,
  );
  const unlinked = db.query<AccountRecord>(
    `SELECT ${ACCOUNT} FROM accounts a
     WHERE a.username = ? AND a.kind = 'human' AND a.password_hash IS NULL
       AND a.external_id IS NULL
       AND a.erased_at IS NULL
       AND NOT EXISTS (SELECT 1 FROM identities i WHERE i.account_id = a.id)`,
  );
  return {
    identity: (issuer, subject) => byIdentity.get(issuer, subject),
    unlinkedAccount: (username) => unlinked.get(username),
  };
}

export function identityWrites(db: Connection): IdentityWrites {
  const insert = db.change(
    `INSERT INTO identities (issuer, subject, account_id, created_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (issuer, subject) DO NOTHING`,
  );
  return {
    insertIdentity: ({ issuer, subject, account_id, at }) =>
      insert.run(issuer, subject, account_id, at).changes > 0,
  };
}
