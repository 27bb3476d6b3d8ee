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
 * Refuses a master key that opens nothing of what is sealed: the right one is lost or not set. Sealing new
 * texts with another would hide that until somebody misses the old ones.
 */
export async function refuseOtherMasterKey(
  config: Config,
  store: Pick<Store, "read">,
  log: Logger,
): Promise<void> {
  const problem = await masterKeyProblem(config, store);
  if (problem?.opensNothing) throw new ConfigError(problem.sentence);
  if (problem) log.warn("master key does not open all stored keys and secrets");
}

/** Refuses master keys that do not open all that is sealed. */
export async function requireMasterKeys(config: Config, store: Pick<Store, "read">): Promise<void> {
  const problem = await masterKeyProblem(config, store);
  if (problem) throw new ConfigError(problem.sentence);
}

async function masterKeyProblem(config: Config, store: Pick<Store, "read">) {
  const stored = await store.read((tx) => tx.sealPrefixes());
  const path = resolve(config.dataDir, "master.key");
  const keys = config.masterKeys ?? (existsSync(path) ? keyFile(config).read() : null);
  const known = new Set(keys?.map(sealPrefix));
  const unknown = stored.filter((prefix) => !known.has(prefix));
  if (unknown.length === 0) return null;
  const opensNothing = unknown.length === stored.length;
  const sealed = `${opensNothing ? "" : "all of "}the provider keys and secrets that are stored`;
  const problem = config.masterKeys
    ? `PARLEY_MASTER_KEY does not open ${sealed}`
    : `PARLEY_MASTER_KEY is not set, and ${path} ${keys ? "does not open" : "does not exist to open"} ${sealed}`;
  const remedy =
    'put back the master key of this installation. If it is lost, run "parley keys rotate --discard"';
  return { opensNothing, sentence: `${problem}: ${remedy}.` };
}
