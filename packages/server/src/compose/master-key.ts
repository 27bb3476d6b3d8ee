import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { type Config, ConfigError } from "../config/config.ts";
import { type MasterKeyFile, openMasterKeyFile } from "../config/master-keys.ts";
import type { Logger } from "../observe/log.ts";
import { createVault, sealPrefix, type Vault } from "../security/vault.ts";
import { secretFile } from "../store/data-folder.ts";
import type { Store } from "../store/store.ts";

export const keyFile = (config: Config): MasterKeyFile =>
  openMasterKeyFile(secretFile(config, "master.key"));

/** Opens the vault. Without PARLEY_MASTER_KEY, and without a file with a key, it generates one. */
export function openVault(config: Config): Vault {
  if (config.masterKeys) return createVault(config.masterKeys);
  const file = keyFile(config);
  return createVault(file.read(), file.read);
}

/**
 * Throws if something is sealed, and nothing of it with a known master key: the key is lost or another
 * one. Sealing new texts with it would hide that until somebody misses the old ones.
 */
export async function refuseOtherMasterKey(
  config: Config,
  store: Pick<Store, "read">,
  log: Logger,
): Promise<void> {
  const stored = await store.read((tx) => tx.sealPrefixes());
  if (stored.length === 0) return;
  const path = resolve(config.dataDir, "master.key");
  const keys = config.masterKeys ?? (existsSync(path) ? keyFile(config).read() : null);
  const known = new Set(keys?.map(sealPrefix));
  const unknown = stored.filter((prefix) => !known.has(prefix));
  if (unknown.length === stored.length) {
    const problem = config.masterKeys
      ? "PARLEY_MASTER_KEY does not open the provider keys and secrets that are stored"
      : `PARLEY_MASTER_KEY is not set, and ${path} ${keys ? "does not open" : "does not exist to open"} the provider keys and secrets that are stored`;
    throw new ConfigError(
      `${problem}: put back the master key of this installation. If it is lost, run "parley keys rotate --discard".`,
    );
  }
  if (unknown.length > 0) log.warn("master key does not open all stored keys and secrets");
}
