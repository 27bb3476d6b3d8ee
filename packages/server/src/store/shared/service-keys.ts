/** Columns of a `ServiceKeyRecord`. */
export const SERVICE_KEY = "name, created_at, last_used_at, revoked_at";
