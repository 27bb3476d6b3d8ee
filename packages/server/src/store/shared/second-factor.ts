/** Stores a secret unless the account has a confirmed one. */
export const BEGIN_SECOND_FACTOR = `INSERT INTO second_factors
    (account_id, secret, created_at, last_step) VALUES ($1, $2, $3, 0)
  ON CONFLICT (account_id) DO UPDATE
  SET secret = excluded.secret, created_at = excluded.created_at, last_step = 0
  WHERE second_factors.confirmed_at IS NULL`;

export const CONFIRM_SECOND_FACTOR = `UPDATE second_factors SET confirmed_at = $3
  WHERE account_id = $1 AND secret = $2 AND confirmed_at IS NULL`;

export const USE_TIME_STEP =
  "UPDATE second_factors SET last_step = $2 WHERE account_id = $1 AND last_step < $2";

export const RESEAL_SECOND_FACTOR =
  "UPDATE second_factors SET secret = $3 WHERE account_id = $1 AND secret = $2";
