import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

/** Links with which people set a new password. An account has one at most, of which only a hash is stored. */
export interface PasswordResetReads {
  /** The link with the token of that hash, also after it has expired. */
  passwordReset(tokenHash: string): Awaitable<PasswordResetRecord | null>;
}

export interface PasswordResetWrites {
  /** Stores the link of an account, in place of an earlier one. */
  setPasswordReset(reset: NewPasswordReset): Awaitable<void>;
  /** Deletes the link of an account, if it has one. */
  removePasswordReset(accountId: number): Awaitable<void>;
}

export interface PasswordResetRecord {
  readonly account: AccountRecord;
  readonly expires_at: number;
}

export interface NewPasswordReset {
  account_id: number;
  token_hash: string;
  expires_at: number;
}
