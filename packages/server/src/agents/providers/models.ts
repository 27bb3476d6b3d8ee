import type { AgentModel } from "@parley/protocol";
import type { Adapter, ModelRequest } from "./adapter.ts";
import { errorFromResponse } from "./classify-error.ts";
import { ProviderError, providerErrors } from "./provider-errors.ts";
import { parseJson, readStart, valueAt } from "./wire.ts";

/** A person waits for the list. */
const TIMEOUT_MS = 10_000;
/** Gateways list some hundred models, each in less than a kilobyte. */
const MAX_BYTES = 1 << 20;
const MAX_MODELS = 500;

/**
 * Asks a provider for its models, newest first where it says when they were made. Throws a
 * `ProviderError` if there is no list. Time and size are bounded.
 */
export async function listModels(
  adapter: Adapter,
  access: Pick<ModelRequest, "api_key" | "base_url">,
): Promise<AgentModel[]> {
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
