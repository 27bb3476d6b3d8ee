import type { KeyTest, OutputOf } from "@parley/protocol";
import type { Config, Provider } from "../config/config.ts";
import type { Logger } from "../observe/log.ts";
import { notFound } from "../rules/failure.ts";
import { type KeySource, modelOf } from "../rules/keys.ts";
import { isSandboxKey } from "../rules/sandbox.ts";
import type { Vault } from "../security/vault.ts";
import type { AgentRecord } from "../store/agents.ts";
import type { ModelRequest } from "./providers/adapter.ts";
import { callModel } from "./providers/call.ts";
import { adapters, createProviderSource, type ModelSource } from "./providers/index.ts";
import { ProviderError } from "./providers/provider-errors.ts";
import { sandbox } from "./sandbox/index.ts";
import { TurnFailed } from "./turn-failed.ts";

export interface KeyServices {
  readonly config: Config;
  readonly vault: Vault;
  readonly log: Logger;
}

/** The key for an agent's turns, and whose it is. Throws a `TurnFailed` if none is stored or opens. */
export function openKey(
  { config, vault, log }: KeyServices,
  agent: AgentRecord,
): { api_key: string; source: KeySource } {
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

/** Replaces the error of a call whose operator's key was rejected: the owner cannot correct it. */
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

const TEST_REQUEST = {
  system: "",
  messages: [{ role: "user", content: [{ type: "text", text: "Say hi." }] }],
  tools: [],
  /** Some models reject a smaller limit. */
  max_output_tokens: 16,
} satisfies Partial<ModelRequest>;
/** A person waits for the result, so there is one attempt with short timeouts. */
const CALL_OPTIONS = {
  timeouts: { headersMs: 15_000, firstTokenMs: 15_000, errorBodyMs: 2_000 },
  retry: { maxAttempts: 1 },
};

export type KeyTester = ReturnType<typeof createKeyTester>;

export function createKeyTester(services: KeyServices) {
  const { config } = services;
  return {
    /** Makes a small call of the agent's model, with the given key or the one that the agent uses. */
    async test(agent: AgentRecord, givenKey?: string): Promise<KeyTest> {
      const providerId = agent.account.provider ?? "";
      const provider = config.providers.get(providerId);
      if (!provider) throw notFound(`agent ${agent.account.username}`);
      const model =
        givenKey === undefined ? modelOf(agent, config) : (agent.model ?? provider.model);
      let sandbox = false;
      let source: KeySource = "own";
      try {
        const opened = givenKey === undefined ? openKey(services, agent) : null;
        const key = opened?.api_key ?? givenKey ?? "";
        source = opened?.source ?? "own";
        sandbox = isSandboxKey(key);
        const { signal } = new AbortController();
        const access = { api_key: key, base_url: provider.base_url };
        const request: ModelRequest = { ...TEST_REQUEST, ...access, model, signal };
        const outputs = callModel(sourceOf(key, provider, config), request, CALL_OPTIONS);
        // The first output proves that the key works. Leaving the loop closes the connection.
        for await (const _ of outputs) break;
        return { works: true, error: null, model, sandbox };
      } catch (thrown) {
        const error =
          source === "operator" ? operatorKeyError(thrown, providerId, services) : thrown;
        if (!(error instanceof TurnFailed)) throw error;
        return { works: false, error: error.error, model, sandbox };
      }
    },
  };
}

type ModelList = OutputOf<"getAgentModels">;

/** Models appear and disappear within days, and an editor asks whenever it is opened. */
const KEPT_MS = 5 * 60_000;
const MAX_KEPT_LISTS = 1000;

export type ModelLists = ReturnType<typeof createModelLists>;

export function createModelLists(services: KeyServices) {
  const { config, log } = services;
  const kept = new Map<string, { list: ModelList; until: number }>();

  async function ask(agent: AgentRecord, beforeCall: () => void): Promise<ModelList | null> {
    const provider = config.providers.get(agent.account.provider ?? "");
    if (!provider || agent.sealed_key === null) return null;
    try {
      const { api_key } = openKey(services, agent);
      const source = sourceOf(api_key, provider, config);
      beforeCall();
      const items = await source.models({ api_key, base_url: provider.base_url });
      return items.length > 0 ? { items, from: "provider" } : null;
    } catch (error) {
      if (!(error instanceof TurnFailed)) throw error;
      const { code } = error;
      log.debug({ provider: agent.account.provider, code }, "model list not available");
      return null;
    }
  }

  function keep(key: string, list: ModelList): void {
    kept.delete(key);
    kept.set(key, { list, until: Date.now() + KEPT_MS });
    const [oldest] = kept.keys();
    if (kept.size > MAX_KEPT_LISTS && oldest !== undefined) kept.delete(oldest);
  }

  return {
    /**
     * The models that the agent can be given. `beforeCall` is called before a call to the provider, and
     * may throw. With the operator's key, there is only the operator's model, and nobody is called.
     */
    async of(agent: AgentRecord, beforeCall: () => void): Promise<ModelList> {
      // A sealed key is never sealed twice in the same way: another key has another list.
      const key = `${agent.owner.id} ${agent.account.provider} ${agent.sealed_key}`;
      const known = kept.get(key);
      if (known && known.until > Date.now()) return known.list;
      const list = await ask(agent, beforeCall);
      if (list) keep(key, list);
      const id = modelOf({ ...agent, model: null }, config);
      return list ?? { items: [{ id, display_name: id }], from: "configuration" };
    },
  };
}
