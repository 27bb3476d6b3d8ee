import type { ServiceKeyReads, ServiceKeyRecord, ServiceKeyWrites } from "../service-keys.ts";
import {
  INSERT_SERVICE_KEY,
  REVOKE_SERVICE_KEY,
  SERVICE_KEYS,
  VALID_SERVICE_KEY,
} from "../shared/service-keys.ts";
import type { Methods } from "./unit.ts";

export const serviceKeyReads: Methods<keyof ServiceKeyReads> = {
  serviceKey: (unit, keyHash) => unit.get<ServiceKeyRecord>(VALID_SERVICE_KEY, keyHash),
  serviceKeys: (unit) => unit.all<ServiceKeyRecord>(SERVICE_KEYS),
};

export const serviceKeyWrites: Methods<keyof ServiceKeyWrites> = {
  insertServiceKey: async (unit, { name, key_hash, at }) =>
    (await unit.write(INSERT_SERVICE_KEY, name, key_hash, at)).count > 0,
  touchServiceKey: async (unit, name, lastUsedAt) => {
    await unit.write("UPDATE service_keys SET last_used_at = $2 WHERE name = $1", name, lastUsedAt);
  },
  revokeServiceKey: async (unit, name, at) =>
    (await unit.write(REVOKE_SERVICE_KEY, name, at)).count > 0,
};
