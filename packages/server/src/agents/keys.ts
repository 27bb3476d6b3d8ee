import type { Config } from "../config.ts";
import type { Logger } from "../observe/log.ts";
import { isSandboxKey } from "../rules/sandbox.ts";
import type { Vault } from "../security/vault.ts";
import type { AgentRecord } from "../store/agents.ts";
import type { CallOptions } from "./providers/call.ts";
import { sandboxFetch } from "./sandbox/index.ts";
import { TurnFailed } from "./turn-failed.ts";

export interface KeyServices {
  config: Config;
  vault: Vault;
  log: Logger;
}

/** Decrypts an agent's stored key. Throws a `TurnFailed` if there is none or it does not open. */
export function openStoredKey({ vault, log }: KeyServices, agent: AgentRecord): string {
  const { account, owner, sealed_key } = agent;
  if (sealed_key === null) throw keyMissing(agent);
  try {
    return vault.open(sealed_key, { owner_id: owner.id, provider: account.provider ?? "" });
  } catch (error) {
    log.error({ err: error, agent: account.username }, "sealed key does not open");
    throw new TurnFailed("internal", "The stored API key cannot be opened here. Store it again.");
  }
}

export const keyMissing = ({ owner }: AgentRecord) =>
  new TurnFailed("key_missing", `${owner.display_name} has not set an API key for this agent yet.`);

/** Selects the sandbox for sandbox keys. Throws a `TurnFailed` if the sandbox is off. */
export function fetchForKey(key: string, { sandbox }: Config): Pick<CallOptions, "fetch"> {
  if (!isSandboxKey(key)) return {};
  if (!sandbox) {
    throw new TurnFailed("key_rejected", "The sandbox is off here. Store a key of the provider's.");
  }
  return { fetch: sandboxFetch };
}
