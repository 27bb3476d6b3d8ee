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
import type { Connection } from "./connection.ts";

export function secondFactorReads(db: Connection): SecondFactorReads {
  const byAccount = db.query<SecondFactorRecord>(
    "SELECT account_id, secret, confirmed_at FROM second_factors WHERE account_id = ?",
  );
  const codes = db.query<{ count: number }>(
    "SELECT count(*) AS count FROM recovery_codes WHERE account_id = ?",
  );
  const sealed = db.query<SealedSecondFactor>(SEALED_SECOND_FACTORS);
  return {
    secondFactor: (accountId) => byAccount.get(accountId),
    recoveryCodesLeft: (accountId) => codes.get(accountId)?.count ?? 0,
    sealedSecondFactors: () => sealed.all(),
  };
}

export function secondFactorWrites(db: Connection): SecondFactorWrites {
  const begin = db.change(BEGIN_SECOND_FACTOR);
  const confirm = db.change(CONFIRM_SECOND_FACTOR);
  const useStep = db.change(USE_TIME_STEP);
  const reseal = db.change(RESEAL_SECOND_FACTOR);
  const remove = db.change("DELETE FROM second_factors WHERE account_id = ?");
  const insertCode = db.change("INSERT INTO recovery_codes (account_id, code_hash) VALUES (?, ?)");
  const useCode = db.change("DELETE FROM recovery_codes WHERE account_id = ? AND code_hash = ?");
  const removeCodes = db.change("DELETE FROM recovery_codes WHERE account_id = ?");
  return {
    beginSecondFactor: ({ account_id, secret, at }) =>
      begin.run(account_id, secret, at).changes > 0,
    confirmSecondFactor: ({ account_id, secret, at }) =>
      confirm.run(account_id, secret, at).changes > 0,
    useTimeStep: (accountId, step) => useStep.run(accountId, step).changes > 0,
    setRecoveryCodes: (accountId, hashes) => {
      removeCodes.run(accountId);
      for (const hash of hashes) insertCode.run(accountId, hash);
    },
    useRecoveryCode: (accountId, hash) => useCode.run(accountId, hash).changes > 0,
    removeSecondFactor: (accountId) => {
      removeCodes.run(accountId);
      return remove.run(accountId).changes > 0;
    },
    resealSecondFactor: (factor, secret) =>
      void reseal.run(factor.account_id, factor.secret, secret),
  };
}
