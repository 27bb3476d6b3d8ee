import type { AccountRecord } from "../accounts.ts";
import type { PasswordResetRecord } from "../password-resets.ts";
import { ACCOUNT, accountOf } from "./accounts.ts";

export const PASSWORD_RESET = `SELECT ${ACCOUNT}, r.expires_at FROM password_resets r
  JOIN accounts a ON a.id = r.account_id WHERE r.token_hash = $1`;

export const SET_PASSWORD_RESET = `INSERT INTO password_resets (account_id, token_hash, expires_at)
  VALUES ($1, $2, $3) ON CONFLICT (account_id)
  DO UPDATE SET token_hash = excluded.token_hash, expires_at = excluded.expires_at`;

export const REMOVE_PASSWORD_RESET = "DELETE FROM password_resets WHERE account_id = $1";

export type PasswordResetRow = AccountRecord & { expires_at: number };

export const toPasswordReset = (row: PasswordResetRow): PasswordResetRecord => ({
  account: accountOf(row),
  expires_at: row.expires_at,
});
