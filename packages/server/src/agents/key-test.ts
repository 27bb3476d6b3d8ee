import type { KeyTest } from "@parley/protocol";
import { notFound } from "../rules/failure.ts";
import type { ModelMessage } from "../rules/model-content.ts";
import { isSandboxKey } from "../rules/sandbox.ts";
import type { AgentRecord } from "../store/agents.ts";
import { carrierOf, type KeyServices, storedKey } from "./keys.ts";
import { callModel } from "./providers/call.ts";
import { adapters } from "./providers/index.ts";
import { ProviderError } from "./providers/provider.ts";
import { TurnFailed } from "./turn-failed.ts";

const QUESTION: ModelMessage = {
  role: "user",
  content: [{ type: "text", text: "Say hi." }],
};
/** Some models refuse a smaller answer than this. */
const MAX_OUTPUT_TOKENS = 16;
/** Somebody waits for the result: one try, and not for long. */
const PROMPT_LIMITS = {
  timeouts: { headers: 15_000, firstToken: 15_000, errorBody: 2_000 },
  retry: { tries: 1 },
};

export interface KeyTester {
  /** Asks the agent's model for a word, with the given key or else the stored one. */
  test(agent: AgentRecord, given?: string): Promise<KeyTest>;
}

export function keyTester(services: KeyServices): KeyTester {
  const { config } = services;
  return {
    async test(agent, given) {
      const provider = config.providers.get(agent.account.provider ?? "");
      if (!provider) throw notFound(`agent ${agent.account.username}`);
      const model = agent.model ?? provider.model;
      let sandbox = false;
      try {
        const api_key = given ?? storedKey(services, agent);
        sandbox = isSandboxKey(api_key);
        const request = {
          system: "",
          messages: [QUESTION],
          model,
          max_output_tokens: MAX_OUTPUT_TOKENS,
          api_key,
          base_url: provider.base_url,
          signal: new AbortController().signal,
        };
        const options = { ...carrierOf(api_key, config), ...PROMPT_LIMITS };
        // The first event is proof enough: leaving the loop closes the connection.
        for await (const _ of callModel(adapters[provider.protocol], request, options)) break;
        return { works: true, error: null, model, sandbox };
      } catch (error) {
        if (!(error instanceof TurnFailed) && !(error instanceof ProviderError)) throw error;
        const { code, message } = error;
        return { works: false, error: { code, message }, model, sandbox };
      }
    },
  };
}
