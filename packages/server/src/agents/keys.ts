import type { Config, Provider } from "../config/config.ts";
import type { Logger } from "../observe/log.ts";
import type { KeySource } from "../rules/keys.ts";
import { isSandboxKey } from "../rules/sandbox.ts";
import type { Vault } from "../security/vault.ts";
import type { AgentRecord } from "../store/agents.ts";
import { adapters } from "./providers/index.ts";
import { ProviderError } from "./providers/provider-errors.ts";
import { createProviderSource, type ModelSource } from "./providers/source.ts";
import { sandbox } from "./sandbox/index.ts";
import { TurnFailed } from "./turn-failed.ts";

export interface KeyServices {
  config: Config;
  vault: Vault;
  log: Logger;
}

/** The key that an agent's turns use, and who pays for it. */
export interface AgentKey {
  readonly api_key: string;
  readonly source: KeySource;
}

/** Returns the owner's key, or the operator's. Throws a `TurnFailed` if there is none or it does not open. */
export function openKey({ config, vault, log }: KeyServices, agent: AgentRecord): AgentKey {
  const { account, owner, sealed_key } = agent;
  const provider = account.provider ?? "";
  if (sealed_key === null) {
    const api_key = config.operatorKeys.get(provider);
    if (api_key === undefined) throw keyMissing();
    return { api_key, source: "operator" };
  }
  try {
    const api_key = vault.open(sealed_key, { owner_id: owner.id, provider });
    return { api_key, source: "own" };
  } catch (error) {
    log.error({ err: error, agent: account.username }, "sealed key does not open");
    throw new TurnFailed({ code: "internal", parameters: { reason: "sealed_key" } });
  }
}

export const keyMissing = () => new TurnFailed({ code: "key_missing" });

/**
 * Replaces the error of a call with the operator's key that the provider has rejected: the owner
 * cannot correct it.
 */
export function operatorKeyError(error: unknown, provider: string, { log }: KeyServices): unknown {
  if (!(error instanceof ProviderError) || error.code !== "key_rejected") return error;
  log.error({ provider, status: error.status }, "operator key rejected by provider");
  return new TurnFailed({ code: "key_rejected", parameters: { reason: "operator_key" } });
}

/** Who answers calls with this key. Throws a `TurnFailed` for a sandbox key if the sandbox is off. */
export function sourceOf(key: string, { protocol }: Provider, config: Config): ModelSource {
  if (!isSandboxKey(key)) return createProviderSource(adapters[protocol]);
  if (config.sandbox) return sandbox;
  throw new TurnFailed({ code: "key_rejected", parameters: { reason: "sandbox_off" } });
}
