import type { AuditAction } from "@parley/protocol";
import { badField, conflict, type Failure, forbidden } from "../rules/failure.ts";
import { hashToken } from "../rules/tokens.ts";
import type { AuditDetails, AuditLog, Recorder } from "../security/audit-log.ts";
import type { Caller, Origin } from "../security/caller.ts";
import { passwordWeakness } from "../security/common-passwords.ts";
import { ownDetails } from "../security/own-password.ts";
import { newToken } from "../security/tokens.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";

/** Throws `forbidden` if nobody signs in with a password here. */
export function checkPasswordSignIn(config: { readonly passwordSignIn: boolean }): void {
  if (!config.passwordSignIn) throw forbidden("sign-in with a password is switched off");
}

/** Throws `bad_request` for a password that is easy to guess. */
export function checkStrength(field: string, password: string, username: string): void {
  const weakness = passwordWeakness(password, username);
  if (weakness) throw badField(field, weakness);
}

/** Records that a caller has given a wrong password of their own. */
export async function wrongPassword(
  context: { readonly audit: AuditLog; readonly caller: Caller; readonly origin: Origin },
  action: AuditAction,
): Promise<Failure> {
  await context.audit.record(action, ownDetails(context));
  return forbidden("the password is wrong", { password: "is wrong" });
}

const VALID_MS = 24 * 60 * 60 * 1000;

/**
 * Creates a link of the account, in place of an earlier one. The store has only the hash of its token.
 * Throws `conflict` for an account that has no password, because its person signs in in another way, or
 * is suspended.
 */
export async function createPasswordReset(
  tx: WriteTx,
  record: Recorder,
  { id }: AccountRecord,
  details: AuditDetails,
) {
  const { account, password_hash } = await tx.lockCredentials(id);
  if (account.suspended_at !== null) throw conflict("the account is suspended: restore it first");
  if (password_hash === null) throw conflict("the account has no password to reset");
  const token = newToken("reset");
  const expires_at = Date.now() + VALID_MS;
  await tx.setPasswordReset({ account_id: id, token_hash: hashToken(token), expires_at });
  await record("password_reset_created", { ...details, account: account.username });
  return { token, expires_at };
}

/** The link with that token, if it works. */
export async function usablePasswordReset(tx: ReadTx, token: string) {
  const found = await tx.passwordReset(hashToken(token));
  if (!found || found.expires_at <= Date.now()) return null;
  return found.account.suspended_at === null ? found : null;
}

/** The address of the page that sets the password. No server gets what follows the `#`, so no log has it. */
export const resetUrl = (base: string, { token }: { token: string }): string =>
  `${base}/reset-password#${token}`;
