import { keyFile, openStore, openVault } from "../compose.ts";
import { readConfig } from "../config.ts";
import type { Vault } from "../security/vault.ts";
import type { Store } from "../store/store.ts";
import { command } from "./command.ts";
import { commandLog } from "./output.ts";

export const rotateKeysCommand = command({
  name: "keys rotate",
  summary: "Encrypt all provider keys with a new master key.",
  details: `Adds a key to master.key in the data folder and encrypts all provider keys with it, while the
server runs. With PARLEY_MASTER_KEY, put the new key first and restart the server before.`,
  examples: [{ line: "keys rotate", summary: "As the user of the server, or as root." }],
  async run() {
    const config = readConfig();
    const store = await openStore(config);
    if (!config.masterKeys) keyFile(config).add();
    const { resealed, kept } = await rotateKeys(store, openVault(config));
    await commandLog(config, store).record("master_key_rotated", { keys_resealed: resealed });
    await store.close();
    return {
      json: { resealed, kept },
      text: `Sealed ${resealed} keys with the newest master key; ${kept} already were.`,
    };
  },
});

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
