import { type Sql, sql } from "./sql.ts";

/** The keys with which backends of products call the service. Only their hashes are stored. */
export const serviceKeyReads = {
  /** The key with that hash, unless it is revoked. */
  serviceKey: (db: Sql, keyHash: string) =>
    db.get<ServiceKeyRecord>`${SERVICE_KEYS} WHERE key_hash = ${keyHash} AND revoked_at IS NULL`,
  /** All keys, revoked ones included, ordered by name. */
  serviceKeys: (db: Sql) => db.all<ServiceKeyRecord>`${SERVICE_KEYS} ORDER BY name`,
};

export const serviceKeyWrites = {
  /** Returns false, and changes nothing, when a key had that name before, even if it is revoked. */
  insertServiceKey: (db: Sql, { at, ...key }: NewServiceKey) =>
    db.insertNew("service_keys", { ...key, created_at: at }),
  /** Stores when a key was last used. */
  touchServiceKey: (db: Sql, name: string, lastUsedAt: number) =>
    db.update("service_keys", { name }, { last_used_at: lastUsedAt }),
  /** Returns false when there is no key with that name, or it is revoked already. */
  revokeServiceKey: (db: Sql, name: string, at: number) =>
    db.hasChanged`
      UPDATE service_keys SET revoked_at = ${at} WHERE name = ${name} AND revoked_at IS NULL`,
};

export interface ServiceKeyRecord {
  readonly name: string;
  readonly created_at: number;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
}

export interface NewServiceKey {
  name: string;
  key_hash: string;
  at: number;
}

/** Selects `ServiceKeyRecord`s. */
const SERVICE_KEYS = sql`SELECT name, created_at, last_used_at, revoked_at FROM service_keys`;
