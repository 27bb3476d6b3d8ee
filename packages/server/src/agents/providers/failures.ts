import { ProviderError } from "./provider.ts";

/** Every way a call can fail, with what the person who reads it can do. */
export const failures = {
  malformedKey: () =>
    new ProviderError(
      "key_rejected",
      "The stored API key contains characters that no provider accepts. Store the key again.",
    ),
  keyRejected: (status?: number) =>
    new ProviderError(
      "key_rejected",
      "The provider rejected the API key. Store a key that is valid and may use this model.",
      { status },
    ),
  rateLimited: (status?: number, retry_after_ms?: number) =>
    new ProviderError(
      "provider_rate_limited",
      "The provider is limiting requests with this API key. Wait a little, then try again.",
      { retryable: true, status, retry_after_ms },
    ),
  quotaUsedUp: (status?: number) =>
    new ProviderError(
      status === 429 ? "provider_rate_limited" : "provider_refused",
      "The account behind this API key has no credit or quota left. Add some with the provider, or store another key.",
      { retryable: status === 429, status },
    ),
  overloaded: (status?: number, retry_after_ms?: number) =>
    new ProviderError(
      "provider_unavailable",
      "The provider has a problem or is overloaded. Try again in a few minutes.",
      { retryable: true, status, retry_after_ms },
    ),
  unreachable: (cause: unknown) =>
    new ProviderError(
      "provider_unavailable",
      "The connection to the provider failed. Try again in a few minutes.",
      { retryable: true, cause },
    ),
  redirected: (status: number) =>
    new ProviderError(
      "provider_unavailable",
      "The provider's address redirects elsewhere, which is not followed. Ask the operator to correct it.",
      { status },
    ),
  brokenOff: () =>
    new ProviderError(
      "provider_unavailable",
      "The provider's answer was broken off or unreadable. Try again.",
      { retryable: true },
    ),
  endless: () =>
    new ProviderError(
      "provider_unavailable",
      "The provider sent far more data than was asked for and was cut off. Try again later.",
    ),
  tooSlow: () =>
    new ProviderError("timeout", "The provider took too long to answer. Try again in a moment."),
  tooLong: (status?: number) =>
    new ProviderError(
      "context_too_long",
      "The conversation is too long for this model. Start a new one, or choose a model with a larger context.",
      { status },
    ),
  unknownModel: (status?: number) =>
    new ProviderError(
      "provider_refused",
      "The provider does not know this agent's model. Choose another model for the agent.",
      { status },
    ),
  requestRefused: (status?: number) =>
    new ProviderError(
      "provider_refused",
      "The provider did not accept the request. Check the agent's model and instructions.",
      { status },
    ),
  answerRefused: () =>
    new ProviderError(
      "provider_refused",
      "The provider declined to answer this. Rephrase the message and try again.",
    ),
};
