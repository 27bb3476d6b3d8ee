import type {
  SealedSecondFactor,
  SecondFactorReads,
  SecondFactorRecord,
  SecondFactorWrites,
} from "../second-factor.ts";
import { SEALED_SECOND_FACTORS } from "../shared/sealed-texts.ts";
import {
  BEGIN_SECOND_FACTOR,
  CONFIRM_SECOND_FACTOR,
  RESEAL_SECOND_FACTOR,
  USE_TIME_STEP,
} from "../shared/second-factor.ts";
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
  sealedSecondFactors: (unit) => unit.all<SealedSecondFactor>(SEALED_SECOND_FACTORS),
};

export const secondFactorWrites: Methods<keyof SecondFactorWrites> = {
  beginSecondFactor: async (unit, { account_id, secret, at }) =>
    (await unit.write(BEGIN_SECOND_FACTOR, account_id, secret, at)).count > 0,
  confirmSecondFactor: async (unit, { account_id, secret, at }) =>
    (await unit.write(CONFIRM_SECOND_FACTOR, account_id, secret, at)).count > 0,
  useTimeStep: async (unit, accountId, step) =>
    (await unit.write(USE_TIME_STEP, accountId, step)).count > 0,
  setRecoveryCodes: async (unit, accountId, hashes) => {
    await unit.write("DELETE FROM recovery_codes WHERE account_id = $1", accountId);
    for (const hash of hashes) {
      await unit.write(
        "INSERT INTO recovery_codes (account_id, code_hash) VALUES ($1, $2)",
        accountId,
        hash,
      );
    }
  },
  useRecoveryCode: async (unit, accountId, hash) => {
    const used = await unit.write(
      "DELETE FROM recovery_codes WHERE account_id = $1 AND code_hash = $2",
      accountId,
      hash,
    );
    return used.count > 0;
  },
  removeSecondFactor: async (unit, accountId) => {
    await unit.write("DELETE FROM recovery_codes WHERE account_id = $1", accountId);
    const removed = await unit.write("DELETE FROM second_factors WHERE account_id = $1", accountId);
    return removed.count > 0;
  },
  resealSecondFactor: async (unit, factor, secret) => {
    await unit.write(RESEAL_SECOND_FACTOR, factor.account_id, factor.secret, secret);
  },
};
