import type { TurnFacts } from "@parley/protocol";
import { TurnFailed } from "../turn-failed.ts";

interface ProviderErrorDetails {
  /** Whether the same request may succeed when repeated. */
  retryable?: boolean;
  /** How long the provider asks to wait before the next request. */
  retry_after_ms?: number | undefined;
  /** The HTTP status that the provider answered with or reported, for the log. */
  status?: number | undefined;
  /** The error of the connection, for the log. Never anything that the provider wrote. */
  cause?: unknown;
}

/** A model call that failed. It never contains the key or anything that the provider wrote. */
export class ProviderError extends TurnFailed {
  override name = "ProviderError";
  readonly retryable: boolean;
  readonly retry_after_ms: number | undefined;
  readonly status: number | undefined;

  constructor(facts: TurnFacts, details: ProviderErrorDetails = {}) {
    super(facts, details.cause === undefined ? undefined : { cause: details.cause });
    this.retryable = details.retryable ?? false;
    this.retry_after_ms = details.retry_after_ms;
    this.status = details.status;
  }
}

/** Every way in which a call can fail. */
export const providerErrors = {
  malformedKey: () => failed("key_rejected", "malformed"),
  keyRejected: (status?: number) => failed("key_rejected", "rejected", { status }),
  rateLimited: (status?: number, retry_after_ms?: number) =>
    failed("provider_rate_limited", "requests", { retryable: true, status, retry_after_ms }),
  quotaExceeded: (status?: number) =>
    status === 429
      ? failed("provider_rate_limited", "no_credit", { retryable: true, status })
      : failed("provider_refused", "no_credit", { status }),
  unavailable: (status?: number, retry_after_ms?: number) =>
    failed("provider_unavailable", "failing", { retryable: true, status, retry_after_ms }),
  unreachable: (cause: unknown) =>
    failed("provider_unavailable", "unreachable", { retryable: true, cause }),
  redirected: (status: number) => failed("provider_unavailable", "redirects", { status }),
  incompleteAnswer: () => failed("provider_unavailable", "broken_answer", { retryable: true }),
  /** Not retried automatically, because the provider charges for each empty answer. */
  emptyAnswer: (end: "stop" | "length") =>
    failed("provider_unavailable", end === "length" ? "answer_limit" : "empty_answer"),
  tooMuchData: () => failed("provider_unavailable", "too_much_data"),
  timeout: () => new ProviderError({ code: "timeout" }),
  contextTooLong: (status?: number) => failed("context_too_long", "conversation", { status }),
  unknownModel: (status?: number) => failed("provider_refused", "unknown_model", { status }),
  requestRefused: (status?: number) => failed("provider_refused", "request", { status }),
  toolsRefused: (status?: number) => failed("provider_refused", "tools", { status }),
  answerRefused: () => failed("provider_refused", "answer"),
};

type WithReason = Extract<TurnFacts, { parameters: { reason: string } }>;

function failed<Code extends WithReason["code"]>(
  code: Code,
  reason: Extract<WithReason, { code: Code }>["parameters"]["reason"],
  details?: ProviderErrorDetails,
): ProviderError {
  return new ProviderError({ code, parameters: { reason } } as TurnFacts, details);
}
