import type { Call, Invoke } from "../../calls/invoke.ts";
import type { Changes } from "../../changes/stream.ts";
import type { JsonBounds } from "../../security/bounded-json.ts";
import type { Origin } from "../../security/caller.ts";
import type { Services } from "../services.ts";

/**
 * Bounds of a request body: the protocol's schemas take a second for tens of thousands of keys, and
 * exhaust the stack for as many levels. The longest arguments of a tool are a list of 1,000 usernames.
 */
export const MCP_BOUNDS: JsonBounds = { maxTokens: 4000, maxDepth: 64 };

/** A request whose caller is known and whose body is read. */
export interface McpRequest {
  readonly request: Request;
  readonly body: unknown;
  readonly caller: Awaited<ReturnType<Call["authenticate"]>>;
  readonly origin: Origin;
}

/** Parley as an MCP server. It keeps no MCP sessions, so that any node can answer any request. */
export interface Mcp {
  serve(request: McpRequest): Promise<Response>;
  /** Ends the calls that wait for an answer. */
  stop(): void;
}

export interface McpOptions {
  services: Pick<Services, "hub" | "config" | "log" | "rates">;
  /** By the names of operations over HTTP. */
  invoke: Invoke;
  changes: Pick<Changes, "listen">;
}
