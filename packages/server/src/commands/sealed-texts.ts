import { secondFactorBinding } from "../domain/second-factor.ts";
import { toolSecretsBinding } from "../domain/tools.ts";
import { secretBinding } from "../outbound/webhook-attempt.ts";
import { newSecret } from "../security/second-factor.ts";
import type { SealBinding, Vault } from "../security/vault.ts";
import type { Awaitable } from "../store/awaitable.ts";
import type { SealedTexts } from "../store/sealed-texts.ts";
import type { WriteTx } from "../store/store.ts";

/** A text that is sealed with the master key. */
export interface SealedText {
  /** What it is, in the plural. */
  readonly kind: string;
  readonly sealed: string;
  readonly binding: SealBinding;
  /** Stores the new form, unless the text was changed since it was read. */
  replace(tx: WriteTx, sealed: string): Awaitable<unknown>;
  discard(tx: WriteTx, vault: Vault): Awaitable<unknown>;
}

export function sealedTexts(stored: SealedTexts): SealedText[] {
  const keys = stored.keys.map<SealedText>((key) => ({
    kind: "provider keys",
    sealed: key.sealed,
    binding: key,
    replace: (tx, sealed) => tx.resealKey(key, sealed),
    discard: (tx) => tx.removeAgentKey(key.owner_id, key.provider),
  }));
  const webhooks = stored.webhooks.map<SealedText>(({ id, secret }) => ({
    kind: "webhook secrets",
    sealed: secret,
    binding: secretBinding(id),
    replace: (tx, sealed) => tx.resealWebhook(id, secret, sealed),
    discard: (tx) => tx.deleteWebhook(id),
  }));
  const factors = stored.secondFactors.map<SealedText>((factor) => {
    const binding = secondFactorBinding(factor.account_id);
    const replace: SealedText["replace"] = (tx, sealed) => tx.resealSecondFactor(factor, sealed);
    // The account stays protected: no app has the new secret, and recovery codes still work.
    const discard: SealedText["discard"] = (tx, vault) =>
      replace(tx, vault.seal(newSecret(), binding));
    return { kind: "second factors", sealed: factor.secret, binding, replace, discard };
  });
  const tools = stored.toolSecrets.map<SealedText>((server) => ({
    kind: "tokens of tool servers",
    sealed: server.secrets,
    binding: toolSecretsBinding(server),
    replace: (tx, sealed) => tx.replaceToolSecrets(server, sealed),
    discard: (tx) => tx.replaceToolSecrets(server, null),
  }));
  return [...keys, ...webhooks, ...factors, ...tools];
}

/** Null if it was sealed with another key. */
export function opened(vault: Vault, { sealed, binding }: Pick<SealedText, "sealed" | "binding">) {
  try {
    return vault.open(sealed, binding);
  } catch {
    // The caller counts or discards it.
    return null;
  }
}
