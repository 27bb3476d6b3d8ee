import type { turnErrorCodes } from "@parley/protocol";
import type { ModelMessage } from "../../rules/model-content.ts";

/** Why a turn failed, as clients see it. */
export type TurnErrorCode = (typeof turnErrorCodes)[number];

/** One call of a model, in no provider's dialect. */
export interface ModelRequest {
  /** Who the model is and what it may do; empty for nothing. */
  system: string;
  /** Oldest first. */
  messages: readonly ModelMessage[];
  model: string;
  max_output_tokens: number;
  /** Sent to `base_url` and to nowhere else; appears in no error. */
  api_key: string;
  /** From configuration only. Its path and query are kept, its redirects are not followed. */
  base_url: string;
  /** Ends the call: the connection to the provider is closed at once. */
  signal: AbortSignal;
}

type TextEvent = { type: "text"; text: string };

/** Tokens counted so far; a later figure replaces an earlier one, an absent one leaves it. */
export type UsageEvent = { type: "usage"; input_tokens?: number; output_tokens?: number };

/** What a call yields; see `callModel` for the order and the guarantees. */
export type ModelEvent =
  | TextEvent
  | UsageEvent
  /** The model finished, or it was cut off at the longest answer allowed. */
  | { type: "end"; reason: "stop" | "length" };

/** What an adapter reads out of one server-sent event. */
export type WireEvent =
  | TextEvent
  | UsageEvent
  /** Why the model stopped. Without it an answer counts as broken off. */
  | { type: "end"; reason: "stop" | "length" | "refused" }
  /** The model is at work and says nothing yet, so it is not taken for silent. */
  | { type: "thinking" };

/** A request in the provider's dialect, always a POST. */
export interface WireRequest {
  url: string;
  headers: Record<string, string>;
  body: string;
}

/**
 * One wire protocol. Time-outs, retries, byte handling and HTTP errors are the caller's affair:
 * an adapter only translates, has no state, and is one file and one line in the registry.
 */
export interface Adapter {
  /** Throws a `ProviderError` when the request cannot be expressed, as with a malformed key. */
  request(request: ModelRequest): WireRequest;
  /**
   * Reads the data of one server-sent event. Events it does not know yield nothing, since
   * protocols grow. Throws a `ProviderError` for nonsense and for errors that the provider reports.
   */
  parse(data: string): WireEvent[];
}

export interface ProviderErrorDetails {
  /** Whether the same request may succeed when repeated. */
  retryable?: boolean;
  /** How long the provider asks to be left alone. */
  retry_after_ms?: number | undefined;
  /** The HTTP status that the provider answered with or reported, for the log. */
  status?: number | undefined;
  /** The error of the connection, for the log. Never anything the provider wrote. */
  cause?: unknown;
}

/**
 * A call that failed. The message is a sentence that a person can act on; it holds nothing the
 * provider wrote and never the key, so it can be shown as it is.
 */
export class ProviderError extends Error {
  override name = "ProviderError";
  readonly code: TurnErrorCode;
  readonly retryable: boolean;
  readonly retry_after_ms: number | undefined;
  readonly status: number | undefined;

  constructor(code: TurnErrorCode, message: string, details: ProviderErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.retryable = details.retryable ?? false;
    this.retry_after_ms = details.retry_after_ms;
    this.status = details.status;
  }
}
