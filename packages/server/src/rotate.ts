import type { Vault } from "./security/vault.ts";
import type { Store } from "./store/store.ts";

/** Seals every key anew that is not under the newest master key. Safe beside a running server. */
export async function rotateKeys(
  store: Store,
  vault: Vault,
): Promise<{ resealed: number; kept: number }> {
  const keys = await store.read((tx) => tx.sealedKeys());
  const old = keys.filter(({ sealed }) => !vault.isCurrent(sealed));
  for (const key of old) {
    const sealed = vault.seal(vault.open(key.sealed, key), key);
    await store.write((tx) => tx.resealKey(key, sealed));
  }
  return { resealed: old.length, kept: keys.length - old.length };
}
