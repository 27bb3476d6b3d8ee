import { keyFile, openVault, requireMasterKeys } from "../compose/master-key.ts";
import type { Vault } from "../security/vault.ts";
import type { Store } from "../store/store.ts";
import { command } from "./command.ts";
import { openService } from "./people.ts";
import { opened, sealedTexts } from "./sealed-texts.ts";

export const rotateKeysCommand = command({
  name: "keys rotate",
  summary: "Encrypt all stored keys and secrets with a new master key.",
  details: `Adds a key to master.key in the data folder and encrypts all provider keys, tokens of tool
servers, webhook secrets and second factors with it, while the server runs. With
PARLEY_MASTER_KEY, put the new key first and restart the server before. If the master key is lost,
--discard deletes what nobody can read any more; people with a second factor then sign in with a
recovery code.`,
  options: {
    discard: { type: "boolean", summary: "Delete what no master key opens." },
  },
  examples: [
    { line: "keys rotate", summary: "As the user of the server, or as root." },
    { line: "keys rotate --discard", summary: "After the master key was lost." },
  ],
  async run({ options: { discard } }) {
    await using service = await openService();
    const { config, store, log } = service;
    if (!discard) await requireMasterKeys(config, store);
    if (!config.masterKeys) keyFile(config).add();
    const vault = openVault(config);
    const discarded = discard ? await discardUnreadable(store, vault) : 0;
    const { resealed, kept } = await rotateKeys(store, vault);
    await log.record("master_key_rotated", { keys_resealed: resealed });
    return {
      json: { resealed, kept, ...(discard && { discarded }) },
      text: `Sealed ${resealed} keys with the newest master key; ${kept} already were.${discard ? ` Discarded ${discarded}.` : ""}`,
    };
  },
});

/**
 * Reseals everything that is not sealed with the newest master key. Safe while a server runs: it
 * repeats until it finds nothing more that the server has sealed with an old one meanwhile.
 */
export async function rotateKeys(store: Store, vault: Vault) {
  let resealed = 0;
  for (;;) {
    const all = await readSealed(store);
    const old = all.filter(({ sealed }) => !vault.isCurrent(sealed));
    if (old.length === 0) return { resealed, kept: all.length - resealed };
    for (const text of old) {
      const newly = vault.seal(vault.open(text.sealed, text.binding), text.binding);
      await store.write((tx) => text.replace(tx, newly));
    }
    resealed += old.length;
  }
}

/** Discards what was sealed with a master key that is lost. Returns how many texts that were. */
async function discardUnreadable(store: Store, vault: Vault): Promise<number> {
  const lost = (await readSealed(store)).filter((text) => opened(vault, text) === null);
  for (const text of lost) await store.write((tx) => text.discard(tx, vault));
  return lost.length;
}

const readSealed = (store: Store) =>
  store.read(async (tx) =>
    sealedTexts({
      keys: await tx.sealedKeys(),
      webhooks: await tx.webhooks(),
      secondFactors: await tx.sealedSecondFactors(),
      toolSecrets: await tx.sealedToolSecrets(),
    }),
  );
