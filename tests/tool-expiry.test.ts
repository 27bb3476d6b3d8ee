import { expect, test } from "bun:test";
import { agentOf, answerTo, failure, people, say } from "@parley/testkit/client.ts";
import { databaseOf } from "@parley/testkit/database.ts";
import { answers, toolCalls } from "@parley/testkit/provider-responders.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { startServer, type TestServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { ToolServer } from "@parley/testkit/tool-server.ts";
import { newKey } from "@parley/testkit/turns.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Ends the time of all calls that wait, before the server checks for such calls again. */
function passTime(server: TestServer): void {
  using db = databaseOf(server);
  db.run("UPDATE tool_calls SET expires_at = 1 WHERE status = 'pending'");
  db.run(
    `UPDATE messages SET tool_calls = json_set(tool_calls, '$[0].expires_at', 1)
     WHERE tool_calls IS NOT NULL`,
  );
}

function storedStatus(server: TestServer, callId: string): string | undefined {
  using db = databaseOf(server);
  const query = db.query<{ status: string }, [string]>(
    "SELECT status FROM tool_calls WHERE uuid = ?",
  );
  return query.get(callId)?.status;
}

/** Alice's own conversation with an agent that asks before it uses the tool `echo`. */
async function setUp() {
  await using stack = new AsyncDisposableStack();
  const provider = stack.use(await startSharedProvider());
  const tools = stack.use(new ToolServer());
  const settings = { ...providersAt(provider.url), PARLEY_PRIVATE_ADDRESSES: "allow" };
  const server = stack.use(await startServer(settings));
  const [alice] = await people(server.url, "alice");
  const { id: server_id } = await alice.call("addToolServer", { name: "bank", url: tools.url });
  const agent_username = agentOf(alice);
  const grants = [{ server_id, tool: "echo", policy: "ask" as const }];
  await alice.call("setAgentTools", { agent_username, grants });
  const key = await newKey(alice);
  const chat = await alice.call("startChat", { usernames: [agent_username] });
  const reader = stack.use(await alice.connect());
  const moved = stack.move();
  return {
    provider,
    tools,
    server,
    alice,
    key,
    chat,
    reader,
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}

test("a call whose time is over is expired at once, and cannot be approved", async () => {
  await using talk = await setUp();
  const { provider, tools, server, alice, key, chat, reader } = talk;
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

test("agents that were stopped do not start again when a call expires", async () => {
  await using talk = await setUp();
  const { provider, tools, server, alice, key, chat, reader } = talk;
  const both = ["a", "b"].map((text) => ({ name: "bank__echo", input: { text } }));
  provider.respond(key, toolCalls(both));
  const { tool_calls } = await answerTo(reader, await say(alice, chat, "go on"));
  const [waiting, approved] = tool_calls.map(({ id }) => id) as [string, string];
  await alice.call("decideToolCall", { call_id: approved, decision: "approve" });
  await alice.call("stopChatAgents", { chat_id: chat.id });
  // A further request would wait for the test to answer it.
  provider.respond(key);
  await server.moveClock(DAY_MS);
  const isExpired = () => storedStatus(server, waiting) === "expired";
  await server.moveClockUntil(isExpired, "the call expires", 60_000);
  const stopped = await alice.call("stopChatAgents", { chat_id: chat.id });
  expect(stopped).toEqual({ stopped: 0, cancelled: 0 });
  expect(provider.calls(key)).toHaveLength(1);
  expect(tools.got("tools/call")).toHaveLength(0);
});
