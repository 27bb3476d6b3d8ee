import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Config } from "../../config/config.ts";
import { parseMasterKeys } from "../../config/master-keys.ts";
import { fileProblem } from "../../config/setting.ts";
import { isSandboxKey } from "../../rules/sandbox.ts";
import { createVault } from "../../security/vault.ts";
import type { SealedTexts } from "../../store/sealed-texts.ts";
import { opened, type SealedText, sealedTexts } from "../sealed-texts.ts";
import { type Check, failed, ok } from "./check.ts";

const NAME = "master key";

export function checkMasterKey(config: Config, stored: SealedTexts): Check[] {
  const source = config.masterKeys ? "PARLEY_MASTER_KEY" : pathOf(config);
  const all = sealedTexts(stored);
  const todo = `Put back the master key of the installation. Otherwise people store their keys and the tokens of their tool servers again, you create the webhooks again, and people with a second factor sign in with a recovery code: run "parley keys rotate --discard".`;
  const { keys, problem } = masterKeysOf(config);
  if (problem) return [failed(NAME, `${source} ${problem}`, todo)];
  if (!keys && all.length === 0) return [ok(NAME, "none yet, and none needed yet")];
  if (!keys) return [failed(NAME, `${source} has no key for ${counted(all)}`, todo)];
  if (all.length === 0) return [ok(NAME, `${source}; sealed with it: none`)];
  const vault = createVault(keys);
  const lost = all.filter((text) => opened(vault, text) === null);
  if (lost.length === 0) return [ok(NAME, `${source} opens all ${counted(all)}`)];
  return [failed(NAME, `${source} does not open ${counted(lost, all)}`, todo)];
}

const pathOf = ({ dataDir }: Config) => resolve(dataDir, "master.key");

/** The master keys, newest first. Null if there are none. */
function masterKeysOf(config: Config): { keys: readonly Buffer[] | null; problem?: string } {
  const path = pathOf(config);
  if (config.masterKeys || !existsSync(path)) return { keys: config.masterKeys };
  try {
    const keys = parseMasterKeys(readFileSync(path, "utf8"));
    return keys ? { keys } : { keys, problem: "has no master keys of 32 bytes in base64" };
  } catch (error) {
    return { keys: null, problem: `cannot be read: ${fileProblem(error)}` };
  }
}

/** The providers for which somebody has stored a key, other than one of the sandbox. */
export function providersWithKeys(config: Config, { keys }: SealedTexts): string[] {
  const vault = createVault(masterKeysOf(config).keys ?? []);
  const isReal = (key: SealedTexts["keys"][number]) => {
    const text = opened(vault, { sealed: key.sealed, binding: key });
    return text === null || !isSandboxKey(text);
  };
  return keys.filter(isReal).map(({ provider }) => provider);
}

/** How many there are of each kind, and of how many if not of all: `1 of 2 provider keys`. */
function counted(some: readonly SealedText[], all = some): string {
  const count = (texts: readonly SealedText[], kind: string) =>
    texts.filter((text) => text.kind === kind).length;
  const kinds = [...new Set(some.map(({ kind }) => kind))];
  const parts = kinds.map((kind) => {
    const total = some === all ? "" : ` of ${count(all, kind)}`;
    return `${count(some, kind)}${total} ${kind}`;
  });
  return parts.join(", ");
}
