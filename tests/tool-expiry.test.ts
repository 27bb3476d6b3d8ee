import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { agentOf, answerTo, failure, people, say } from "@parley/testkit/client.ts";
import { answers, toolCalls } from "@parley/testkit/provider-responders.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { startServer, type TestServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { ToolServer } from "@parley/testkit/tool-server.ts";
import { newKey } from "@parley/testkit/turns.ts";

/** Ends the time of all calls that wait. */
function passTime({ dataDir }: TestServer): void {
  using db = new Database(join(dataDir, "parley.db"), { readwrite: true });
  db.run("UPDATE tool_calls SET expires_at = 1 WHERE status = 'pending'");
  db.run(
    `UPDATE messages SET tool_calls = json_set(tool_calls, '$[0].expires_at', 1)
     WHERE tool_calls IS NOT NULL`,
  );
}

test("a call whose time is over is expired at once, and cannot be approved", async () => {
  await using provider = await startSharedProvider();
  await using tools = new ToolServer();
  const settings = { ...providersAt(provider.url), PARLEY_PRIVATE_ADDRESSES: "allow" };
  await using server = await startServer(settings);
  const [alice] = await people(server.url, "alice");
  const { id: server_id } = await alice.call("addToolServer", { name: "bank", url: tools.url });
  const agent_username = agentOf(alice);
  const grants = [{ server_id, tool: "echo", policy: "ask" as const }];
  await alice.call("setAgentTools", { agent_username, grants });
  const key = await newKey(alice);
  const chat = await alice.call("startChat", { usernames: [agent_username] });
  await using reader = await alice.connect();
  const asks = toolCalls([{ name: "bank__echo", input: { text: "hi" } }]);
  provider.respond(key, asks, answers("Hello."));
  const { id: message_id, tool_calls } = await answerTo(reader, await say(alice, chat, "go on"));
  const call_id = tool_calls[0]?.id ?? "";
  expect((await alice.call("getPendingToolCalls")).items).toHaveLength(1);

  passTime(server);
  const expired = [{ id: call_id, status: "expired" }];
  expect((await alice.call("getPendingToolCalls")).items).toEqual([]);
  expect(await alice.call("getMessage", { message_id })).toMatchObject({ tool_calls: expired });
  expect((await alice.call("getToolCalls", { message_id })).items).toMatchObject(expired);
  expect((await alice.call("getTurn", { message_id })).rounds).toMatchObject([{ calls: expired }]);
  for (const decision of ["approve", "reject"] as const) {
    const late = await failure(alice.call("decideToolCall", { call_id, decision }));
    expect(late).toMatchObject({ code: "conflict", message: expect.stringContaining("expired") });
  }
  await answerTo(reader, await say(alice, chat, "are you there?"));
  expect(tools.got("tools/call")).toHaveLength(0);
});
