import { ACCOUNT } from "./accounts.ts";

export const BLOCKED_ACCOUNTS = `SELECT ${ACCOUNT}
  FROM blocks b JOIN accounts a ON a.id = b.blocked_id
  WHERE b.account_id = $1 AND a.username > $2 ORDER BY a.username LIMIT $3`;

export const INSERT_BLOCK = `INSERT INTO blocks (account_id, blocked_id, created_at)
  VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`;
