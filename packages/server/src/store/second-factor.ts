import type { Awaitable } from "./awaitable.ts";

/** Second factors of sign-in (TOTP) with their recovery codes, of which only hashes are stored. */
export interface SecondFactorReads {
  /** The second factor of an account, also one that is not confirmed. */
  secondFactor(accountId: number): Awaitable<SecondFactorRecord | null>;
  /** The number of recovery codes that are not used. */
  recoveryCodesLeft(accountId: number): Awaitable<number>;
  /** Every sealed secret, for the rotation of the key that seals them. */
  sealedSecondFactors(): Awaitable<SealedSecondFactor[]>;
}

export interface SecondFactorWrites {
  /**
   * Stores a secret that is not confirmed, in place of an earlier one. Returns false, and changes
   * nothing, when the account has a confirmed one.
   */
  beginSecondFactor(factor: NewSecondFactor): Awaitable<boolean>;
  /** Returns false, and changes nothing, unless the secret is the account's and is not confirmed. */
  confirmSecondFactor(factor: NewSecondFactor): Awaitable<boolean>;
  /**
   * Records that a code of this time step was used, so that no code is accepted twice. Returns false, and
   * changes nothing, when this time step or a later one was used before.
   */
  useTimeStep(accountId: number, step: number): Awaitable<boolean>;
  /** Replaces all recovery codes of an account. */
  setRecoveryCodes(accountId: number, hashes: readonly string[]): Awaitable<void>;
  /** Deletes a recovery code. Returns false when the account has no such code. */
  useRecoveryCode(accountId: number, hash: string): Awaitable<boolean>;
  /** Deletes the second factor, confirmed or not, and its recovery codes. Returns false when there is none. */
  removeSecondFactor(accountId: number): Awaitable<boolean>;
  /** Replaces a sealed secret, unless it was changed since it was read. */
  resealSecondFactor(factor: SealedSecondFactor, secret: string): Awaitable<void>;
}

export interface SealedSecondFactor {
  readonly account_id: number;
  /** Sealed by the vault. */
  readonly secret: string;
}

export interface SecondFactorRecord extends SealedSecondFactor {
  /** Null until a first code has proved that the person has the secret. */
  readonly confirmed_at: number | null;
}

export interface NewSecondFactor extends SealedSecondFactor {
  readonly at: number;
}
