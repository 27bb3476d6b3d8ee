import type { KeyTest } from "@parley/protocol";
import type { Provider } from "../config/config.ts";
import { notFound } from "../rules/failure.ts";
import { type KeySource, modelOf } from "../rules/keys.ts";
import { isSandboxKey } from "../rules/sandbox.ts";
import type { AgentRecord } from "../store/agents.ts";
import { type KeyServices, openKey, operatorKeyError, sourceOf } from "./keys.ts";
import type { ModelRequest } from "./providers/adapter.ts";
import { callModel } from "./providers/call.ts";
import { TurnFailed } from "./turn-failed.ts";

/** Some models reject a smaller limit. */
const MAX_OUTPUT_TOKENS = 16;
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
        const request = testRequest(provider, model, key);
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

const testRequest = ({ base_url }: Provider, model: string, api_key: string): ModelRequest => ({
  system: "",
  messages: [{ role: "user", content: [{ type: "text", text: "Say hi." }] }],
  tools: [],
  model,
  max_output_tokens: MAX_OUTPUT_TOKENS,
  api_key,
  base_url,
  signal: new AbortController().signal,
});
