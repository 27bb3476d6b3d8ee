import type { Awaitable } from "./awaitable.ts";

/** The keys with which backends of products call the service. Only their hashes are stored. */
export interface ServiceKeyReads {
  /** The key with that hash, unless it is revoked. */
  serviceKey(keyHash: string): Awaitable<ServiceKeyRecord | null>;
  /** All keys, revoked ones included, ordered by name. */
  serviceKeys(): Awaitable<ServiceKeyRecord[]>;
}

export interface ServiceKeyWrites {
  /** Returns false, and changes nothing, when a key had that name before, even if it is revoked. */
  insertServiceKey(key: NewServiceKey): Awaitable<boolean>;
  /** Stores when a key was last used. */
  touchServiceKey(name: string, lastUsedAt: number): Awaitable<void>;
  /** Returns false when there is no key with that name, or it is revoked already. */
  revokeServiceKey(name: string, at: number): Awaitable<boolean>;
}

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
