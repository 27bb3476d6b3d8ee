import type { OutputOf } from "@parley/protocol";
import { modelOf } from "../rules/keys.ts";
import type { AgentRecord } from "../store/agents.ts";
import { type KeyServices, openKey, sourceOf } from "./keys.ts";
import { TurnFailed } from "./turn-failed.ts";

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
