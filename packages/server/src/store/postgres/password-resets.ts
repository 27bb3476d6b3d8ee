import type { PasswordResetReads, PasswordResetWrites } from "../password-resets.ts";
import {
  PASSWORD_RESET,
  type PasswordResetRow,
  REMOVE_PASSWORD_RESET,
  SET_PASSWORD_RESET,
  toPasswordReset,
} from "../shared/password-resets.ts";
import type { Methods } from "./unit.ts";

export const passwordResetReads: Methods<keyof PasswordResetReads> = {
  passwordReset: async (unit, tokenHash) => {
    const row = await unit.get<PasswordResetRow>(PASSWORD_RESET, tokenHash);
    return row && toPasswordReset(row);
  },
};

export const passwordResetWrites: Methods<keyof PasswordResetWrites> = {
  setPasswordReset: async (unit, { account_id, token_hash, expires_at }) => {
    await unit.change(SET_PASSWORD_RESET, account_id, token_hash, expires_at);
  },
  removePasswordReset: async (unit, accountId) => {
    await unit.change(REMOVE_PASSWORD_RESET, accountId);
  },
};
