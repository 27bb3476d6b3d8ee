import type { ServiceKeyReads, ServiceKeyRecord, ServiceKeyWrites } from "../service-keys.ts";
import { SERVICE_KEY } from "../shared/service-keys.ts";
import type { Methods } from "./unit.ts";

export const serviceKeyReads: Methods<keyof ServiceKeyReads> = {
  serviceKey: (unit, keyHash) =>
    unit.get<ServiceKeyRecord>(
      `SELECT ${SERVICE_KEY} FROM service_keys WHERE key_hash = $1 AND revoked_at IS NULL`,
      keyHash,
    ),
  serviceKeys: (unit) =>
    unit.all<ServiceKeyRecord>(`SELECT ${SERVICE_KEY} FROM service_keys ORDER BY name`),
};

export const serviceKeyWrites: Methods<keyof ServiceKeyWrites> = {
  insertServiceKey: async (unit, { name, key_hash, at }) => {
    const inserted = await unit.change(
      `INSERT INTO service_keys (name, key_hash, created_at) VALUES ($1, $2, $3)
       ON CONFLICT (name) DO NOTHING`,
      name,
      key_hash,
      at,
    );
    return inserted.count > 0;
  },
  touchServiceKey: async (unit, name, lastUsedAt) => {
    await unit.change(
      "UPDATE service_keys SET last_used_at = $2 WHERE name = $1",
      name,
      lastUsedAt,
    );
  },
  revokeServiceKey: async (unit, name, at) => {
    const revoked = await unit.change(
      "UPDATE service_keys SET revoked_at = $2 WHERE name = $1 AND revoked_at IS NULL",
      name,
      at,
    );
    return revoked.count > 0;
  },
};
