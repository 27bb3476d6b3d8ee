import type { turnErrorCodes } from "@parley/protocol";

/** Why a turn failed, as clients see it. */
export type TurnErrorCode = (typeof turnErrorCodes)[number];

interface ProviderErrorDetails {
  /** Whether the same request may succeed when repeated. */
  retryable?: boolean;
  /** How long the provider asks to wait before the next request. */
  retry_after_ms?: number | undefined;
  /** The HTTP status that the provider answered with or reported, for the log. */
  status?: number | undefined;
  /** Whether the provider refused the tools of the request. */
  about_tools?: boolean;
  /** The error of the connection, for the log. Never anything that the provider wrote. */
  cause?: unknown;
}

/**
 * A model call that failed. The message is shown to people, so it says what they can do. It never
 * contains the key or anything that the provider wrote.
 */
export class ProviderError extends Error {
  override name = "ProviderError";
  readonly code: TurnErrorCode;
  readonly retryable: boolean;
  readonly retry_after_ms: number | undefined;
  readonly status: number | undefined;
  readonly about_tools: boolean;

  constructor(code: TurnErrorCode, message: string, details: ProviderErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.retryable = details.retryable ?? false;
    this.retry_after_ms = details.retry_after_ms;
    this.status = details.status;
    this.about_tools = details.about_tools ?? false;
  }
}

/** Every way in which a call can fail. */
export const providerErrors = {
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
  quotaExceeded: (status?: number) =>
    new ProviderError(
      status === 429 ? "provider_rate_limited" : "provider_refused",
      "The account behind this API key has no credit or quota left. Add some with the provider, or store another key.",
      { retryable: status === 429, status },
    ),
  unavailable: (status?: number, retry_after_ms?: number) =>
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
  incompleteAnswer: () =>
    new ProviderError(
      "provider_unavailable",
      "The provider's answer was broken off or unreadable. Try again.",
      { retryable: true },
    ),
  /** Not retried automatically, because the provider charges for each empty answer. */
  emptyAnswer: (reason: "stop" | "length") =>
    new ProviderError(
      "provider_unavailable",
      reason === "length"
        ? "The model reached the limit of its answer before it wrote any text. Try again, or ask for something simpler."
        : "The model ended its answer without any text. Try again.",
    ),
  tooMuchData: () =>
    new ProviderError(
      "provider_unavailable",
      "The provider sent far more data than was asked for and was cut off. Try again later.",
    ),
  timeout: () =>
    new ProviderError("timeout", "The provider took too long to answer. Try again in a moment."),
  contextTooLong: (status?: number) =>
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
  toolsRefused: (status?: number) =>
    new ProviderError(
      "provider_refused",
      "This agent's model cannot use tools. Choose another model, or ask the operator to offer this provider without tools.",
      { status, about_tools: true },
    ),
  answerRefused: () =>
    new ProviderError(
      "provider_refused",
      "The provider declined to answer this. Rephrase the message and try again.",
    ),
};
