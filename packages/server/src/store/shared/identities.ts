import { ACCOUNT } from "./accounts.ts";

export const IDENTITY = `SELECT ${ACCOUNT} FROM identities i JOIN accounts a ON a.id = i.account_id
  WHERE i.issuer = $1 AND i.subject = $2`;

export const UNLINKED_ACCOUNT = `SELECT ${ACCOUNT} FROM accounts a
  WHERE a.username = $1 AND a.kind = 'human' AND a.password_hash IS NULL
    AND a.external_id IS NULL AND a.erased_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM identities i WHERE i.account_id = a.id)`;

export const INSERT_IDENTITY = `INSERT INTO identities (issuer, subject, account_id, created_at)
  VALUES ($1, $2, $3, $4) ON CONFLICT (issuer, subject) DO NOTHING`;
