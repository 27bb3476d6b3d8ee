import type { Mcp, McpOptions } from "./mcp.ts";

/** The server is loaded with the first request, so that others do not start more slowly. */
export function createMcp(options: McpOptions): Mcp {
  let loading: Promise<Mcp> | undefined;
  let isStopped = false;
  const load = async () => {
    const { createMcpServer: mcpServer } = await import("./server.ts");
    const server = mcpServer(options);
    if (isStopped) server.stop();
    return server;
  };
  return {
    async serve(request) {
      loading ??= load().catch((error) => {
        // The next request tries again.
        loading = undefined;
        throw error;
      });
      return (await loading).serve(request);
    },
    stop() {
      isStopped = true;
      // A request that cannot be served because loading fails reports that.
      loading?.then((server) => server.stop()).catch(() => {});
    },
  };
}
