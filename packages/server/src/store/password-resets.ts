import { type AccountRecord, accountAs } from "./account-records.ts";
import { reader, type Sql } from "./sql.ts";

/** Links with which people set a new password. An account has one at most, of which only a hash is stored. */
export const passwordResetReads = {
  /** The link with the token of that hash, also after it has expired. */
  passwordReset: (db: Sql, tokenHash: string) =>
    db.getAs(
      reader<PasswordResetRecord>(),
    )`SELECT ${accountAs("account")}, r.expires_at FROM password_resets r
      JOIN accounts a ON a.id = r.account_id WHERE r.token_hash = ${tokenHash}`,
};

export const passwordResetWrites = {
  /** Stores the link of an account, in place of an earlier one. */
  setPasswordReset: (db: Sql, { account_id, ...reset }: NewPasswordReset) =>
    db.upsert("password_resets", { account_id }, reset),
  /** Deletes the link of an account, if it has one. */
  removePasswordReset: (db: Sql, accountId: number) =>
    db.remove("password_resets", { account_id: accountId }),
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
