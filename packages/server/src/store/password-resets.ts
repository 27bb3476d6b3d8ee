import { ACCOUNT, accountOf } from "./account-records.ts";
import type { AccountRecord } from "./accounts.ts";
import { type Sql, upsert } from "./sql.ts";

/** Links with which people set a new password. An account has one at most, of which only a hash is stored. */
export const passwordResetReads = {
  /** The link with the token of that hash, also after it has expired. */
  async passwordReset(db: Sql, tokenHash: string): Promise<PasswordResetRecord | null> {
    const row = await db.get<AccountRecord & { expires_at: number }>(
      `SELECT ${ACCOUNT}, r.expires_at FROM password_resets r
       JOIN accounts a ON a.id = r.account_id WHERE r.token_hash = $1`,
      [tokenHash],
    );
    return row && { account: accountOf(row), expires_at: row.expires_at };
  },
};

export const passwordResetWrites = {
  /** Stores the link of an account, in place of an earlier one. */
  setPasswordReset: (db: Sql, { account_id, ...reset }: NewPasswordReset) =>
    upsert(db, "password_resets", { account_id }, reset),
  /** Deletes the link of an account, if it has one. */
  async removePasswordReset(db: Sql, accountId: number): Promise<void> {
    await db.change("DELETE FROM password_resets WHERE account_id = $1", [accountId]);
  },
};

export interface PasswordResetRecord {
  readonly account: AccountRecord;
  readonly expires_at: number;
}

export interface NewPasswordReset {
  account_id: number;
  token_hash: string;
  expires_at: number;
}
