import { unavailable } from "../../rules/failure.ts";
import { once } from "../../rules/once.ts";
import type { JsonBounds } from "../../security/bounded-json.ts";
import type { McpOptions, McpRequest } from "./server.ts";

/**
 * Bounds of a request body: the protocol's schemas take a second for tens of thousands of keys, and
 * exhaust the stack for as many levels. The longest arguments of a tool are a list of 1,000 usernames.
 */
export const MCP_BOUNDS: JsonBounds = { maxTokens: 4000, maxDepth: 64 };

export type Mcp = ReturnType<typeof createMcp>;

/**
 * Parley as an MCP server. It keeps no MCP sessions, so that any node can answer any request. It is loaded
 * with the first request, so that others do not start more slowly.
 */
export function createMcp(options: McpOptions) {
  const stopping = new AbortController();
  const load = once(async () =>
    (await import("./server.ts")).createMcpServer(options, stopping.signal),
  );
  return {
    serve: async (request: McpRequest): Promise<Response> => (await load())(request),
    /** Ends the calls that wait for an answer. */
    stop: () => stopping.abort(unavailable("the server is stopping")),
  };
}
