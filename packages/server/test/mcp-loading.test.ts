import { expect, test } from "bun:test";
import { readConfig } from "../src/config/config.ts";
import { createMcp } from "../src/transport/mcp/index.ts";
import type { McpOptions, McpRequest } from "../src/transport/mcp/server.ts";

/** A server that cannot be loaded the first time. */
function failingServer() {
  let attempts = 0;
  const listen = () => {
    if (++attempts === 1) throw new Error("not loaded");
    return () => {};
  };
  return createMcp({
    services: { config: readConfig({}) },
    changes: { listen },
  } as unknown as McpOptions);
}

/** A request that the server refuses once it is loaded. */
const tooLarge = { body: Array(17) } as unknown as McpRequest;
const refusal = (served: Promise<Response>) => served.then(String, (error: Error) => error.message);

test("the MCP server is loaded again after that has failed", async () => {
  const server = failingServer();
  expect(await refusal(server.serve(tooLarge))).toBe("not loaded");
  expect(await refusal(server.serve(tooLarge))).toContain("at most 16 requests");
  server.stop();
});

test("an MCP server that is not loaded can be stopped", async () => {
  const server = failingServer();
  const served = refusal(server.serve(tooLarge));
  server.stop();
  expect(await served).toBe("not loaded");
});
