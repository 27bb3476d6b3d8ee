/** Selects `ServiceKeyRecord`s. */
const SERVICE_KEY = "SELECT name, created_at, last_used_at, revoked_at FROM service_keys";

export const VALID_SERVICE_KEY = `${SERVICE_KEY} WHERE key_hash = $1 AND revoked_at IS NULL`;
export const SERVICE_KEYS = `${SERVICE_KEY} ORDER BY name`;

export const INSERT_SERVICE_KEY = `INSERT INTO service_keys (name, key_hash, created_at)
  VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING`;

export const REVOKE_SERVICE_KEY =
  "UPDATE service_keys SET revoked_at = $2 WHERE name = $1 AND revoked_at IS NULL";
