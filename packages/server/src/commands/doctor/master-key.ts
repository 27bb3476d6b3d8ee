import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Config } from "../../config.ts";
import { secondFactorBinding } from "../../domain/second-factor.ts";
import { toolSecretsBinding } from "../../domain/tools.ts";
import { secretBinding } from "../../outbound/webhook-attempt.ts";
import { parseMasterKeys, type SealBinding, vault } from "../../security/vault.ts";
import type { SealedTexts } from "../../store/shared/sealed-texts.ts";
import { type Check, failed, ok } from "./check.ts";

const NAME = "master key";

interface SealedText {
  /** What it is, in the plural. */
  readonly kind: string;
  readonly sealed: string;
  readonly binding: SealBinding;
}

/** Whether the master key opens everything that is sealed with it. */
export function checkMasterKey({ masterKeys, dataDir }: Config, stored: SealedTexts): Check[] {
  const path = resolve(dataDir, "master.key");
  const fromFile = () => (existsSync(path) ? parseMasterKeys(readFileSync(path, "utf8")) : null);
  const keys = masterKeys ?? fromFile();
  const source = masterKeys ? "PARLEY_MASTER_KEY" : path;
  const all = textsOf(stored);
  if (!keys && all.length === 0) return [ok(NAME, "none yet, and none needed yet")];
  const todo = `Put back the master key of the installation. Otherwise people store their keys and the tokens of their tool servers again, you create the webhooks again, and "parley users reset --second-factor" removes second factors.`;
  if (!keys) return [failed(NAME, `${source} has no key for ${counted(all)}`, todo)];
  const lost = all.filter((text) => !canOpen(keys, text));
  if (lost.length === 0) return [ok(NAME, `${source} opens all ${counted(all)}`)];
  return [failed(NAME, `${source} does not open ${counted(lost, all)}`, todo)];
}

const textsOf = ({ keys, webhooks, secondFactors, toolSecrets }: SealedTexts): SealedText[] => [
  ...keys.map((key) => ({ kind: "provider keys", sealed: key.sealed, binding: key })),
  ...webhooks.map(({ id, secret }) => ({
    kind: "webhook secrets",
    sealed: secret,
    binding: secretBinding(id),
  })),
  ...secondFactors.map(({ account_id, secret }) => ({
    kind: "second factors",
    sealed: secret,
    binding: secondFactorBinding(account_id),
  })),
  ...toolSecrets.map((server) => ({
    kind: "tokens of tool servers",
    sealed: server.secrets,
    binding: toolSecretsBinding(server),
  })),
];

/** How many there are of each kind, and of how many if not of all: `1 of 2 provider keys`. */
function counted(some: readonly SealedText[], all = some): string {
  const count = (texts: readonly SealedText[], kind: string) =>
    texts.filter((text) => text.kind === kind).length;
  const kinds = [...new Set(some.map(({ kind }) => kind))];
  const parts = kinds.map((kind) => {
    const total = some === all ? "" : ` of ${count(all, kind)}`;
    return `${count(some, kind)}${total} ${kind}`;
  });
  return parts.length === 0 ? "0 provider keys" : parts.join(", ");
}

function canOpen(keys: readonly Buffer[], { sealed, binding }: SealedText): boolean {
  try {
    vault(keys).open(sealed, binding);
    return true;
  } catch {
    // Sealed with another key: the caller counts it.
    return false;
  }
}
