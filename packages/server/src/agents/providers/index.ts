import type { AgentModel } from "@parley/protocol";
import type { Adapter, ModelOutput, ModelRequest } from "./adapter.ts";
import { anthropic } from "./anthropic.ts";
import { type AttemptOptions, streamAttempt } from "./attempt.ts";
import { listModels } from "./models.ts";
import { openai } from "./openai.ts";

/** The wire protocols that a provider can be configured with. */
export const adapters = {
  anthropic,
  openai,
} satisfies Record<string, Adapter>;

export type ProtocolName = keyof typeof adapters;

/** Where answers come from: a provider, or the sandbox. */
export interface ModelSource {
  /** Throws a `ProviderError` for a request that cannot be made, such as one with a malformed key. */
  prepare(request: ModelRequest): Attempt;
  /** Its models, newest first if it tells. Throws a `ProviderError` if there is no list. */
  models(access: Pick<ModelRequest, "api_key" | "base_url">): Promise<AgentModel[]>;
}

/** Makes one attempt. Yields nothing before the first output of the model, or an end. */
type Attempt = (options: AttemptOptions) => AsyncGenerator<ModelOutput>;

/** A provider that is called over HTTP. */
export const createProviderSource = (adapter: Adapter): ModelSource => ({
  prepare(request) {
    const httpRequest = adapter.request(request);
    return (options) => streamAttempt(adapter, httpRequest, request, options);
  },
  models: (access) => listModels(adapter, access),
});
