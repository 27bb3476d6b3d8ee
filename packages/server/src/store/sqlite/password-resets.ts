import type { PasswordResetReads, PasswordResetWrites } from "../password-resets.ts";
import {
  PASSWORD_RESET,
  type PasswordResetRow,
  REMOVE_PASSWORD_RESET,
  SET_PASSWORD_RESET,
  toPasswordReset,
} from "../shared/password-resets.ts";
import type { Connection } from "./connection.ts";

export function passwordResetReads(db: Connection): PasswordResetReads {
  const byHash = db.query<PasswordResetRow>(PASSWORD_RESET);
  return {
    passwordReset: (tokenHash) => {
      const row = byHash.get(tokenHash);
      return row && toPasswordReset(row);
    },
  };
}

export function passwordResetWrites(db: Connection): PasswordResetWrites {
  const set = db.change(SET_PASSWORD_RESET);
  const remove = db.change(REMOVE_PASSWORD_RESET);
  return {
    setPasswordReset: ({ account_id, token_hash, expires_at }) =>
      void set.run(account_id, token_hash, expires_at),
    removePasswordReset: (accountId) => void remove.run(accountId),
  };
}
