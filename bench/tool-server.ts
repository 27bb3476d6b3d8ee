/** The tools of the test server: how many, and how long their schemas and results are together. */
export interface ToolPlan {
  readonly tools: number;
  readonly schemaCharacters: number;
  readonly resultCharacters: number;
}

/** Tools with schemas such as servers have: properties with descriptions. */
export function testTools({ tools, schemaCharacters }: ToolPlan) {
  return Array.from({ length: tools }, (_, place) => ({
    name: `lookup_${place}`,
    description: `Looks up entries of the register ${place} that match a query.`,
    inputSchema: testSchema(schemaCharacters),
  }));
}

function testSchema(characters: number) {
  const properties: Record<string, { type: string; description: string }> = {
    query: { type: "string", description: "What to look for." },
  };
  for (let place = 0; JSON.stringify(properties).length < characters; place++) {
    const description = `Keeps the entries whose field ${place} has this value.`;
    properties[`field_${place}`] = { type: "string", description };
  }
  return { type: "object" as const, properties, required: ["query"] };
}

const WORDS = "entry 0x7f3a: the müller account — 4,210.55 EUR; «open» since 2026-03-01 ✓\n";

/**
 * A server with the MCP protocol, for everybody. It has no sessions, so that it may be started again.
 * `calls` counts the calls of tools.
 */
export function startToolServer(port: number, plan: ToolPlan) {
  const tools = testTools(plan);
  const text = WORDS.repeat(plan.resultCharacters / WORDS.length + 1);
  const result = { content: [{ type: "text", text: text.slice(0, plan.resultCharacters) }] };
  const results: Record<string, object> = {
    initialize: {
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "bench", version: "1" },
    },
    "tools/list": { tools },
    "tools/call": result,
  };
  let calls = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    idleTimeout: 60,
    async fetch(request) {
      if (request.method !== "POST") return new Response(null, { status: 405 });
      const { id, method } = (await request.json()) as { id?: number; method: string };
      if (id === undefined) return new Response(null, { status: 202 });
      if (method === "tools/call") calls++;
      const found = results[method];
      const answer = found ? { result: found } : { error: { code: -32601, message: "unknown" } };
      return Response.json({ jsonrpc: "2.0", id, ...answer });
    },
  });
  return { calls: () => calls, stop: () => void server.stop(true) };
}
