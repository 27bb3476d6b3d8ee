import type { AccountRecord } from "../accounts.ts";
import type { IdentityReads, IdentityWrites } from "../identities.ts";
import { ACCOUNT } from "../shared/accounts.ts";
import type { Methods } from "./unit.ts";

export const identityReads: Methods<keyof IdentityReads> = {
  identity: (unit, issuer, subject) =>
    unit.get<AccountRecord>(
      `SELECT ${ACCOUNT} FROM identities i JOIN accounts a ON a.id = i.account_id
       WHERE i.issuer = $1 AND i.subject = $2`,
      issuer,
      subject,
    ),
  unlinkedAccount: (unit, username) =>
    unit.get<AccountRecord>(
      `SELECT ${ACCOUNT} FROM accounts a
       WHERE a.username = $1 AND a.kind = 'human' AND a.password_hash IS NULL
         AND a.external_id IS NULL
         AND a.erased_at IS NULL
         AND NOT EXISTS (SELECT 1 FROM identities i WHERE i.account_id = a.id)`,
      username,
    ),
};

export const identityWrites: Methods<keyof IdentityWrites> = {
  insertIdentity: async (unit, { issuer, subject, account_id, at }) => {
    const inserted = await unit.change(
      `INSERT INTO identities (issuer, subject, account_id, created_at) VALUES ($1, $2, $3, $4)
       ON CONFLICT (issuer, subject) DO NOTHING`,
      issuer,
      subject,
      account_id,
      at,
    );
    return inserted.count > 0;
  },
};
