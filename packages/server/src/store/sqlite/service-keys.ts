import type { ServiceKeyReads, ServiceKeyRecord, ServiceKeyWrites } from "../service-keys.ts";
import { SERVICE_KEY } from "../shared/service-keys.ts";
import type { Connection } from "./connection.ts";

export function serviceKeyReads(db: Connection): ServiceKeyReads {
  const byHash = db.query<ServiceKeyRecord>(
    `SELECT ${SERVICE_KEY} FROM service_keys WHERE key_hash = ? AND revoked_at IS NULL`,
  );
  const all = db.query<ServiceKeyRecord>(`SELECT ${SERVICE_KEY} FROM service_keys ORDER BY name`);
  return {
    serviceKey: (keyHash) => byHash.get(keyHash),
    serviceKeys: () => all.all(),
  };
}

export function serviceKeyWrites(db: Connection): ServiceKeyWrites {
  const insert = db.change(
    `INSERT INTO service_keys (name, key_hash, created_at) VALUES (?, ?, ?)
     ON CONFLICT (name) DO NOTHING`,
  );
  const touch = db.change("UPDATE service_keys SET last_used_at = ?2 WHERE name = ?1");
  const revoke = db.change(
    "UPDATE service_keys SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL",
  );
  return {
    insertServiceKey: ({ name, key_hash, at }) => insert.run(name, key_hash, at).changes > 0,
    touchServiceKey: (name, lastUsedAt) => void touch.run(name, lastUsedAt),
    revokeServiceKey: (name, at) => revoke.run(name, at).changes > 0,
  };
}
