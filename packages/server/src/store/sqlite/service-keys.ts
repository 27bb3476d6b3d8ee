import type { ServiceKeyReads, ServiceKeyRecord, ServiceKeyWrites } from "../service-keys.ts";
import {
  INSERT_SERVICE_KEY,
  REVOKE_SERVICE_KEY,
  SERVICE_KEYS,
  VALID_SERVICE_KEY,
} from "../shared/service-keys.ts";
import type { Connection } from "./connection.ts";

export function serviceKeyReads(db: Connection): ServiceKeyReads {
  const byHash = db.query<ServiceKeyRecord>(VALID_SERVICE_KEY);
  const all = db.query<ServiceKeyRecord>(SERVICE_KEYS);
  return {
    serviceKey: (keyHash) => byHash.get(keyHash),
    serviceKeys: () => all.all(),
  };
}

export function serviceKeyWrites(db: Connection): ServiceKeyWrites {
  const insert = db.change(INSERT_SERVICE_KEY);
  const touch = db.change("UPDATE service_keys SET last_used_at = ?2 WHERE name = ?1");
  const revoke = db.change(REVOKE_SERVICE_KEY);
  return {
    insertServiceKey: ({ name, key_hash, at }) => insert.run(name, key_hash, at).changes > 0,
    touchServiceKey: (name, lastUsedAt) => void touch.run(name, lastUsedAt),
    revokeServiceKey: (name, at) => revoke.run(name, at).changes > 0,
  };
}
