import { newRecoveryCodes, recoveryCodeHash, stepOf } from "../security/second-factor.ts";
import type { Vault } from "../security/vault.ts";
import type { SealedSecondFactor } from "../store/sealed-texts.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";

/** What a secret is sealed for. Not a valid provider id, so that it is never taken for a provider key. */
export const secondFactorBinding = (accountId: number) => ({
  owner_id: accountId,
  provider: "second factor",
});

export type CodeKind = "totp" | "recovery_code";

/** Codes of apps are digits, which people may type with a space in the middle. */
const plainDigits = (code: string) => code.replace(/\s/g, "");

export const kindOfCode = (code: string): CodeKind =>
  /^\d+$/.test(plainDigits(code)) ? "totp" : "recovery_code";

/** The second factor that signing in to the account needs; null if it needs none. */
export async function confirmedFactor(tx: ReadTx, accountId: number) {
  const factor = await tx.secondFactor(accountId);
  return factor?.confirmed_at == null ? null : factor;
}

/** Uses the code of a sign-in. Null: the account has no second factor, and a code is ignored. */
export async function proveSecondFactor(
  tx: WriteTx,
  vault: Vault,
  accountId: number,
  code: string | undefined,
): Promise<CodeKind | "missing" | "wrong" | null> {
  const factor = await confirmedFactor(tx, accountId);
  if (!factor) return null;
  if (code === undefined) return "missing";
  return (await useCode(tx, vault, factor, code)) ?? "wrong";
}

/**
 * Accepts a code of the app, or a recovery code, and makes it invalid: no code is accepted twice, on
 * any node. Returns its kind; null for a wrong one.
 */
export async function useCode(tx: WriteTx, vault: Vault, factor: SealedSecondFactor, code: string) {
  const kind = kindOfCode(code);
  const isRight =
    kind === "totp"
      ? await useAppCode(tx, vault, factor, code)
      : await tx.useRecoveryCode(factor.account_id, recoveryCodeHash(factor.account_id, code));
  return isRight ? kind : null;
}

export async function useAppCode(
  tx: WriteTx,
  vault: Vault,
  { account_id, secret }: SealedSecondFactor,
  code: string,
): Promise<boolean> {
  const plain = vault.open(secret, secondFactorBinding(account_id));
  const step = stepOf(plain, plainDigits(code), Date.now());
  return step !== null && (await tx.useTimeStep(account_id, step));
}

/** Replaces the recovery codes of an account. They are in the result only: the store has their hashes. */
export async function replaceRecoveryCodes(tx: WriteTx, accountId: number): Promise<string[]> {
  const codes = newRecoveryCodes();
  const hashes = codes.map((code) => recoveryCodeHash(accountId, code));
  await tx.setRecoveryCodes(accountId, hashes);
  return codes;
}
