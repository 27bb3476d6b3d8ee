import type { AgentModel } from "@parley/protocol";
import { readStart } from "../../security/guarded-fetch.ts";
import type { Adapter, ModelOutput, ModelRequest } from "./adapter.ts";
import { anthropic } from "./anthropic.ts";
import { type AttemptOptions, streamAttempt } from "./attempt.ts";
import { errorFromResponse } from "./classify-error.ts";
import { openai } from "./openai.ts";
import { ProviderError, providerErrors } from "./provider-errors.ts";
import { parseJson, valueAt } from "./wire.ts";

/** The wire protocols that a provider can be configured with. */
export const adapters = {
  anthropic,
  openai,
} satisfies Record<string, Adapter>;

export type ProtocolName = keyof typeof adapters;

/** Where answers come from: a provider, or the sandbox. */
export interface ModelSource {
  /**
   * Throws a `ProviderError` for a request that cannot be made, such as one with a malformed key. What is
   * returned makes one attempt, and yields nothing before the first output of the model, or an end.
   */
  prepare(request: ModelRequest): (options: AttemptOptions) => AsyncGenerator<ModelOutput>;
  /** Its models, newest first if it tells. Throws a `ProviderError` if there is no list. */
  models(access: Pick<ModelRequest, "api_key" | "base_url">): Promise<AgentModel[]>;
}

export const createProviderSource = (adapter: Adapter): ModelSource => ({
  prepare(request) {
    const httpRequest = adapter.request(request);
    return (options) => streamAttempt(adapter, httpRequest, request, options);
  },
  models: (access) => listModels(adapter, access),
});

/** A person waits for the list. */
const TIMEOUT_MS = 10_000;
/** Gateways list some hundred models, each in less than a kilobyte. */
const MAX_BYTES = 1 << 20;
const MAX_MODELS = 500;

/** See `ModelSource`. Time and size are bounded. */
async function listModels(adapter: Adapter, access: Pick<ModelRequest, "api_key" | "base_url">) {
  const { url, headers } = adapter.models(access);
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const init = { method: "GET", headers, redirect: "manual", signal } as const;
  try {
    const response = await fetch(url, init);
    const body = await readStart(response, MAX_BYTES + 1);
    if (body.length > MAX_BYTES) throw providerErrors.tooMuchData();
    if (!response.ok) throw errorFromResponse(response, `${body}`);
    return modelsIn(parseJson(`${body}`));
  } catch (error) {
    if (error instanceof ProviderError) throw error;
    throw signal.aborted ? providerErrors.timeout() : providerErrors.unreachable(error);
  }
}

/** Both protocols have `data` with an `id` each; Anthropic's also `display_name`, OpenAI's `created`. */
function modelsIn(list: unknown): AgentModel[] {
  const data = valueAt(list, "data");
  if (!Array.isArray(data)) throw providerErrors.incompleteAnswer();
  return data
    .flatMap((each) => modelOf(each) ?? [])
    .sort((one, other) => other.created - one.created)
    .slice(0, MAX_MODELS)
    .map(({ id, display_name }) => ({ id, display_name }));
}

function modelOf(value: unknown): (AgentModel & { created: number }) | null {
  const id = valueAt(value, "id");
  if (!isName(id)) return null;
  const name = valueAt(value, "display_name");
  const created = valueAt(value, "created");
  return {
    id,
    display_name: isName(name) ? name : id,
    created: typeof created === "number" && Number.isFinite(created) ? created : 0,
  };
}

/** What an agent's `model` accepts: one line of at most 128 characters. */
const isName = (value: unknown): value is string =>
  typeof value === "string" &&
  value.length <= 128 &&
  value.trim() === value &&
  value.isWellFormed() &&
  /^[^\p{C}]+$/u.test(value);
