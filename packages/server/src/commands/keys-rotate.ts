import { keyFile, openVault } from "../compose.ts";
import { readConfig } from "../config.ts";
import { secondFactorBinding } from "../domain/second-factor.ts";
import { toolSecretsBinding } from "../domain/tools.ts";
import { secretBinding } from "../outbound/webhook-attempt.ts";
import type { SealBinding, Vault } from "../security/vault.ts";
import type { Awaitable } from "../store/awaitable.ts";
import type { Store, WriteTx } from "../store/store.ts";
import { command } from "./command.ts";
import { commandLog } from "./output.ts";
import { openCommandStore } from "./people.ts";

export const rotateKeysCommand = command({
  name: "keys rotate",
  summary: "Encrypt all stored keys and secrets with a new master key.",
  details: `Adds a key to master.key in the data folder and encrypts all provider keys, tokens of tool
servers, webhook secrets and second factors with it, while the server runs. With
PARLEY_MASTER_KEY, put the new key first and restart the server before.`,
  examples: [{ line: "keys rotate", summary: "As the user of the server, or as root." }],
  async run() {
    const config = readConfig();
    await using opened = await openCommandStore(config);
    const { store } = opened;
    if (!config.masterKeys) keyFile(config).add();
    const { resealed, kept } = await rotateKeys(store, openVault(config));
    await commandLog(config, store).record("master_key_rotated", { keys_resealed: resealed });
    return {
      json: { resealed, kept },
      text: `Sealed ${resealed} keys with the newest master key; ${kept} already were.`,
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

interface SealedText {
  readonly sealed: string;
  readonly binding: SealBinding;
  /** Stores the new form, unless the text was changed since it was read. */
  readonly replace: (tx: WriteTx, sealed: string) => Awaitable<void>;
}

const sealedTexts = (store: Store): Promise<SealedText[]> =>
  store.read(async (tx) => {
    const keys = (await tx.sealedKeys()).map<SealedText>((key) => ({
      sealed: key.sealed,
      binding: key,
      replace: (write, sealed) => write.resealKey(key, sealed),
    }));
    const secrets = (await tx.webhooks()).map<SealedText>(({ id, secret }) => ({
      sealed: secret,
      binding: secretBinding(id),
      replace: (write, sealed) => write.resealWebhook(id, secret, sealed),
    }));
    const factors = (await tx.sealedSecondFactors()).map<SealedText>((factor) => ({
      sealed: factor.secret,
      binding: secondFactorBinding(factor.account_id),
      replace: (write, sealed) => write.resealSecondFactor(factor, sealed),
    }));
    const tools = (await tx.sealedToolSecrets()).map<SealedText>((server) => ({
      sealed: server.secrets,
      binding: toolSecretsBinding(server),
      replace: async (write, sealed) => void (await write.replaceToolSecrets(server, sealed)),
    }));
    return [...keys, ...secrets, ...factors, ...tools];
  });
