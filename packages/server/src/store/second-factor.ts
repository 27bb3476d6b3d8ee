import { SEALED, type SealedSecondFactor } from "./sealed-texts.ts";
import { raw, type Sql } from "./sql.ts";

/** Second factors of sign-in (TOTP) with their recovery codes, of which only hashes are stored. */
export const secondFactorReads = {
  /** The second factor of an account, also one that is not confirmed. */
  secondFactor: (db: Sql, accountId: number) =>
    db.get<SecondFactorRecord>`
      SELECT account_id, secret, confirmed_at FROM second_factors WHERE account_id = ${accountId}`,
  /** The number of recovery codes that are not used. */
  recoveryCodesLeft: (db: Sql, accountId: number) =>
    db.firstNumber`SELECT count(*) AS count FROM recovery_codes WHERE account_id = ${accountId}`,
  /** Every sealed secret, for the rotation of the key that seals them. */
  sealedSecondFactors: (db: Sql) => db.all<SealedSecondFactor>`${raw(SEALED.secondFactors)}`,
};

export const secondFactorWrites = {
  /**
   * Stores a secret that is not confirmed, in place of an earlier one. Returns false, and changes
   * nothing, when the account has a confirmed one.
   */
  beginSecondFactor: (db: Sql, { account_id, secret, at }: NewSecondFactor) =>
    db.hasChanged`
      INSERT INTO second_factors (account_id, secret, created_at, last_step)
      VALUES (${account_id}, ${secret}, ${at}, 0)
      ON CONFLICT (account_id) DO UPDATE
      SET secret = excluded.secret, created_at = excluded.created_at, last_step = 0
      WHERE second_factors.confirmed_at IS NULL`,
  /** Returns false, and changes nothing, unless the secret is the account's and is not confirmed. */
  confirmSecondFactor: (db: Sql, { account_id, secret, at }: NewSecondFactor) =>
    db.hasChanged`
      UPDATE second_factors SET confirmed_at = ${at}
      WHERE account_id = ${account_id} AND secret = ${secret} AND confirmed_at IS NULL`,
  /**
   * Records that a code of this time step was used, so that no code is accepted twice. Returns false, and
   * changes nothing, when this time step or a later one was used before.
   */
  useTimeStep: (db: Sql, accountId: number, step: number) =>
    db.hasChanged`
      UPDATE second_factors SET last_step = ${step}
      WHERE account_id = ${accountId} AND last_step < ${step}`,
  /** Replaces all recovery codes of an account. */
  async setRecoveryCodes(db: Sql, accountId: number, hashes: readonly string[]): Promise<void> {
    await db.remove("recovery_codes", { account_id: accountId });
    await db.change`
      INSERT INTO recovery_codes (account_id, code_hash)
      SELECT ${accountId}, hash FROM unnest(${hashes}::text[]) AS h(hash)`;
  },
  /** Deletes a recovery code. Returns false when the account has no such code. */
  useRecoveryCode: async (db: Sql, accountId: number, hash: string) =>
    (await db.remove("recovery_codes", { account_id: accountId, code_hash: hash })) > 0,
  /** Deletes the second factor, confirmed or not, and its recovery codes. Returns false when there is none. */
  async removeSecondFactor(db: Sql, accountId: number): Promise<boolean> {
    await db.remove("recovery_codes", { account_id: accountId });
    return (await db.remove("second_factors", { account_id: accountId })) > 0;
  },
  /** Replaces a sealed secret, unless it was changed since it was read. */
  resealSecondFactor: (db: Sql, { account_id, secret: from }: SealedSecondFactor, secret: string) =>
    db.update("second_factors", { account_id, secret: from }, { secret }),
};

export interface SecondFactorRecord extends SealedSecondFactor {
  /** Null until a first code has proved that the person has the secret. */
  readonly confirmed_at: number | null;
}

export interface NewSecondFactor extends SealedSecondFactor {
  readonly at: number;
}
