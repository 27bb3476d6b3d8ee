import { keyFile, openStore, openVault } from "../compose.ts";
import { readConfig } from "../config.ts";
import type { Vault } from "../security/vault.ts";
import type { Store } from "../store/store.ts";
import { commandLog, print } from "./output.ts";

/** Adds a key to the key file, unless master keys are configured, and reseals all provider keys. */
export async function rotateKeysCommand(): Promise<void> {
  const config = readConfig();
  const store = await openStore(config);
  if (!config.masterKeys) keyFile(config).add();
  const { resealed, kept } = await rotateKeys(store, openVault(config));
  commandLog(config).record("master_key_rotated", { keys_resealed: resealed });
  print(`Sealed ${resealed} keys with the newest master key; ${kept} already were.`);
  await store.close();
}

/**
 * Reseals every provider key that is not sealed with the newest master key. Safe while a server runs:
 * it repeats until it finds no more keys that the server has sealed with an old one meanwhile.
 */
export async function rotateKeys(
  store: Store,
  vault: Vault,
): Promise<{ resealed: number; kept: number }> {
  let resealed = 0;
  for (;;) {
    const keys = await store.read((tx) => tx.sealedKeys());
    const old = keys.filter(({ sealed }) => !vault.isCurrent(sealed));
    if (old.length === 0) return { resealed, kept: keys.length - resealed };
    for (const key of old) {
      const sealed = vault.seal(vault.open(key.sealed, key), key);
      await store.write((tx) => tx.resealKey(key, sealed));
    }
    resealed += old.length;
  }
}
