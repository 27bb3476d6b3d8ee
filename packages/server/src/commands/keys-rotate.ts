import { keyFile, openVault, requireMasterKeys } from "../compose/master-key.ts";
import { secondFactorBinding } from "../domain/second-factor.ts";
import { toolSecretsBinding } from "../domain/tools.ts";
import { secretBinding } from "../outbound/webhook-attempt.ts";
import { newSecret } from "../security/second-factor.ts";
import type { SealBinding, Vault } from "../security/vault.ts";
import type { Awaitable } from "../store/awaitable.ts";
import type { Store, WriteTx } from "../store/store.ts";
import { command } from "./command.ts";
import { openService } from "./people.ts";

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
export async function rotateKeys(
  store: Store,
  vault: Vault,
): Promise<{ resealed: number; kept: number }> {
  let resealed = 0;
  for (;;) {
    const all = await sealedTexts(store);
    const old = all.filter(({ sealed }) => !vault.isCurrent(sealed));
    if (old.length === 0) return { resealed, kept: all.length - resealed };
    for (const { sealed, binding, replace } of old) {
      const newly = vault.seal(vault.open(sealed, binding), binding);
      await store.write((tx) => replace(tx, newly));
    }
    resealed += old.length;
  }
}

/** Discards what was sealed with a master key that is lost. Returns how many texts that were. */
async function discardUnreadable(store: Store, vault: Vault): Promise<number> {
  const lost = (await sealedTexts(store)).filter(({ sealed, binding }) => {
    try {
      vault.open(sealed, binding);
      return false;
    } catch {
      // Sealed with another key.
      return true;
    }
  });
  for (const { discard } of lost) await store.write((tx) => discard(tx, vault));
  return lost.length;
}

interface SealedText {
  readonly sealed: string;
  readonly binding: SealBinding;
  /** Stores the new form, unless the text was changed since it was read. */
  readonly replace: (tx: WriteTx, sealed: string) => Awaitable<void>;
  readonly discard: (tx: WriteTx, vault: Vault) => Awaitable<unknown>;
}

const sealedTexts = (store: Store): Promise<SealedText[]> =>
  store.read(async (tx) => {
    const keys = (await tx.sealedKeys()).map<SealedText>((key) => ({
      sealed: key.sealed,
      binding: key,
      replace: (write, sealed) => write.resealKey(key, sealed),
      discard: (write) => write.removeAgentKey(key.owner_id, key.provider),
    }));
    const secrets = (await tx.webhooks()).map<SealedText>(({ id, secret }) => ({
      sealed: secret,
      binding: secretBinding(id),
      replace: (write, sealed) => write.resealWebhook(id, secret, sealed),
      discard: (write) => write.deleteWebhook(id),
    }));
    const factors = (await tx.sealedSecondFactors()).map<SealedText>((factor) => ({
      sealed: factor.secret,
      binding: secondFactorBinding(factor.account_id),
      replace: (write, sealed) => write.resealSecondFactor(factor, sealed),
      // The account stays protected: no app has the new secret, and recovery codes still work.
      discard: (write, vault) => {
        const sealed = vault.seal(newSecret(), secondFactorBinding(factor.account_id));
        return write.resealSecondFactor(factor, sealed);
      },
    }));
    const tools = (await tx.sealedToolSecrets()).map<SealedText>((server) => ({
      sealed: server.secrets,
      binding: toolSecretsBinding(server),
      replace: async (write, sealed) => void (await write.replaceToolSecrets(server, sealed)),
      discard: (write) => write.replaceToolSecrets(server, null),
    }));
    return [...keys, ...secrets, ...factors, ...tools];
  });
