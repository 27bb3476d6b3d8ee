import type {
  SealedSecondFactor,
  SecondFactorReads,
  SecondFactorRecord,
  SecondFactorWrites,
} from "../second-factors.ts";
import type { Methods } from "./unit.ts";

export const secondFactorReads: Methods<keyof SecondFactorReads> = {
  secondFactor: (unit, accountId) =>
    unit.get<SecondFactorRecord>(
      "SELECT account_id, secret, confirmed_at FROM second_factors WHERE account_id = $1",
      accountId,
    ),
  recoveryCodesLeft: async (unit, accountId) => {
    const row = await unit.get<{ count: number }>(
      "SELECT count(*) AS count FROM recovery_codes WHERE account_id = $1",
      accountId,
    );
    return row?.count ?? 0;
  },
  sealedSecondFactors: (unit) =>
    unit.all<SealedSecondFactor>("SELECT account_id, secret FROM second_factors"),
};

export const secondFactorWrites: Methods<keyof SecondFactorWrites> = {
  beginSecondFactor: async (unit, { account_id, secret, at }) => {
    const begun = await unit.change(
      `INSERT INTO second_factors AS known (account_id, secret, created_at, last_step)
       VALUES ($1, $2, $3, 0) ON CONFLICT (account_id) DO UPDATE
       SET secret = excluded.secret, created_at = excluded.created_at, last_step = 0
       WHERE known.confirmed_at IS NULL`,
      account_id,
      secret,
      at,
    );
    return begun.count > 0;
  },
  confirmSecondFactor: async (unit, { account_id, secret, at }) => {
    const confirmed = await unit.change(
      `UPDATE second_factors SET confirmed_at = $3
       WHERE account_id = $1 AND secret = $2 AND confirmed_at IS NULL`,
      account_id,
      secret,
      at,
    );
    return confirmed.count > 0;
  },
  useTimeStep: async (unit, accountId, step) => {
    const used = await unit.change(
      "UPDATE second_factors SET last_step = $2 WHERE account_id = $1 AND last_step < $2",
      accountId,
      step,
    );
    return used.count > 0;
  },
  setRecoveryCodes: async (unit, accountId, hashes) => {
    await unit.change("DELETE FROM recovery_codes WHERE account_id = $1", accountId);
    for (const hash of hashes) {
      await unit.change(
        "INSERT INTO recovery_codes (account_id, code_hash) VALUES ($1, $2)",
        accountId,
        hash,
      );
    }
  },
  useRecoveryCode: async (unit, accountId, hash) => {
    const used = await unit.change(
      "DELETE FROM recovery_codes WHERE account_id = $1 AND code_hash = $2",
      accountId,
      hash,
    );
    return used.count > 0;
  },
  removeSecondFactor: async (unit, accountId) => {
    await unit.change("DELETE FROM recovery_codes WHERE account_id = $1", accountId);
    const removed = await unit.change(
      "DELETE FROM second_factors WHERE account_id = $1",
      accountId,
    );
    return removed.count > 0;
  },
  resealSecondFactor: async (unit, factor, secret) => {
    await unit.change(
      "UPDATE second_factors SET secret = $3 WHERE account_id = $1 AND secret = $2",
      factor.account_id,
      factor.secret,
      secret,
    );
  },
};
