import type { ModelMessage } from "../../rules/model-content.ts";

/** One call of a model, in no provider's wire format. */
export interface ModelRequest {
  /** Who the model is and what it may do. Empty for none. */
  system: string;
  /** Oldest first. */
  messages: readonly ModelMessage[];
  model: string;
  max_output_tokens: number;
  /** Sent only to `base_url`. Appears in no error. */
  api_key: string;
  /** From configuration only. Its path and query are kept; redirects are not followed. */
  base_url: string;
  /** Aborting it ends the call and closes the connection to the provider at once. */
  signal: AbortSignal;
}

/** What a call yields. See `callModel` for the order and the guarantees. */
export type ModelEvent =
  | TextEvent
  | UsageEvent
  /** `length`: the answer reached the token limit. */
  | { type: "end"; reason: "stop" | "length" };

/** What an adapter reads from one server-sent event. */
export type AdapterEvent =
  | TextEvent
  | UsageEvent
  /** Why the model stopped. An answer without it is incomplete. */
  | { type: "end"; reason: "stop" | "length" | "refused" }
  /** The model is working but has written no text. Resets the idle timeout. */
  | { type: "thinking" };

type TextEvent = { type: "text"; text: string };

/** Token totals so far. A later value replaces an earlier one; a missing value leaves it. */
export type UsageEvent = { type: "usage"; input_tokens?: number; output_tokens?: number };

/** A request in the provider's wire format. The method is always POST. */
export interface HttpRequest {
  url: string;
  headers: Record<string, string>;
  body: string;
}

/**
 * One wire protocol. An adapter only translates and has no state. The caller handles timeouts,
 * retries, decoding of the byte stream and HTTP errors.
 */
export interface Adapter {
  /** Throws a `ProviderError` for a request that cannot be encoded, such as a malformed key. */
  request(request: ModelRequest): HttpRequest;
  /**
   * Parses the data of one server-sent event. Unknown events yield nothing, because protocols
   * grow. Throws a `ProviderError` for malformed data and for errors that the provider reports.
   */
  parse(data: string): AdapterEvent[];
}
