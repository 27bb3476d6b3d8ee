import type { ModelMessage, ToolDefinition, ToolUsePart } from "../../rules/model-content.ts";

/** One call of a model, in no provider's wire format. */
export interface ModelRequest {
  /** Who the model is and what it may do. Empty for none. */
  system: string;
  /** Oldest first. */
  messages: readonly ModelMessage[];
  /** What the model may call. Providers reject messages with tool calls if there are no tools. */
  tools: readonly ToolDefinition[];
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
export type ModelOutput =
  | TextOutput
  | ThinkingOutput
  | UsageOutput
  | ToolUse
  /**
   * `length`: the answer reached the token limit, possibly in the middle of a call. `tool_use`: the
   * answer has at least one call, and the model waits for the results.
   */
  | { type: "end"; reason: "stop" | "length" | "tool_use" };

/** What an adapter reads from one server-sent event. */
export type AdapterOutput =
  | TextOutput
  | UsageOutput
  | SentToolUse
  /** Why the model stopped. An answer without it is incomplete. */
  | { type: "end"; reason: "stop" | "length" | "refused" }
  | ThinkingOutput;

type TextOutput = { type: "text"; text: string };

/** Hidden thoughts, or arguments of a call, which the provider charges for. Empty if not readable. */
type ThinkingOutput = { type: "thinking"; text: string };

/** One complete call. `name` may be none of the tools that were offered. */
export type ToolUse = {
  type: "tool_use";
  /** Unique in the answer. */
  id: string;
  /** At most 64 characters, `A-Z a-z 0-9 _ -`. */
  name: string;
  /** Null if the arguments are no JSON object, for example because they were cut off. */
  input: Record<string, unknown> | null;
} & Pick<ToolUsePart, "provider_fields" | "thoughts">;

/** A call as an adapter reads it. */
export type SentToolUse = ToolUse & {
  /** Nothing has arrived of its arguments: it has none, or the answer was cut off before them. */
  isBare?: true;
};

/** Token totals so far. A later value replaces an earlier one; a missing value leaves it. */
export type UsageOutput = { type: "usage"; input_tokens?: number; output_tokens?: number };

/** A request in the provider's wire format. The method is POST if it has a body, else GET. */
export interface HttpRequest {
  url: string;
  headers: Record<string, string>;
  body: string;
}

/** One wire protocol. It only translates: the caller handles timeouts, retries and HTTP errors. */
export interface Adapter {
  /** Throws a `ProviderError` for a request that cannot be encoded, such as a malformed key. */
  request(request: ModelRequest): HttpRequest;
  /** The request for the list of models. Throws a `ProviderError` for a malformed key. */
  models(access: Pick<ModelRequest, "api_key" | "base_url">): Omit<HttpRequest, "body">;
  /** Returns the parser for one attempt: calls arrive in fragments, which it holds. */
  parser(): Parser;
}

/**
 * Parses the data of one server-sent event. Unknown events yield nothing, because protocols grow.
 * Throws a `ProviderError` for malformed data and for errors that the provider reports.
 */
export type Parser = (data: string) => AdapterOutput[];
