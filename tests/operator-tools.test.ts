import { afterAll, expect, test } from "bun:test";
import { agentOf, answerTo, failure, liftLimits, people, say } from "@parley/testkit/client.ts";
import { answers, toolCalls } from "@parley/testkit/provider-responders.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { ToolServer, tool } from "@parley/testkit/tool-server.ts";
import { newKey } from "@parley/testkit/turns.ts";
import { until } from "@parley/testkit/until.ts";

const provider = await startSharedProvider();
const tools = new ToolServer();
tools.tools = [tool("echo"), tool("other")];
const server = await startServer({
  ...noRates,
  ...providersAt(provider.url),
  PARLEY_PRIVATE_ADDRESSES: "allow",
  PARLEY_TOOL_SERVERS: JSON.stringify([
    { name: "shared", url: `${tools.url}?api_key=secret#part` },
  ]),
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await tools[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

/** Alice's agent, which was granted a tool of the operator's server. */
async function setUp() {
  const [alice] = await people(server.url, "alice");
  await liftLimits(alice);
  const shared = async () => (await alice.call("getToolServers")).items[0];
  await until(async () => (await shared())?.status === "ready", "the server of the operator");
  const server_id = (await shared())?.id ?? "";
  const agent_username = agentOf(alice);
  const grants = [{ server_id, tool: "echo", policy: "ask" as const }];
  await alice.call("setAgentTools", { agent_username, grants });
  return { alice, agent_username, grants, server_id };
}

test("an operator's server and one's own of the same name have tools of their own", async () => {
  const { alice, agent_username, server_id } = await setUp();
  const key = await newKey(alice);
  await using own = new ToolServer();
  const added = await alice.call("addToolServer", { name: "shared", url: own.url });
  const twice = alice.call("addToolServer", { name: "shared", url: own.url });
  expect((await failure(twice)).code).toBe("conflict");
  const grants = [server_id, added.id].map((id) => ({
    server_id: id,
    tool: "echo",
    policy: "always" as const,
  }));
  await alice.call("setAgentTools", { agent_username, grants });
  const chat = await alice.call("startChat", { usernames: [agent_username] });
  await using reader = await alice.connect();
  provider.respond(key, answers("Hello."));
  await answerTo(reader, await say(alice, chat, "hello"));
  const body = provider.calls(key)[0]?.body as { tools: { name: string }[] } | undefined;
  const names = (body?.tools ?? []).flatMap(({ name }) => (/^shared/.test(name) ? [name] : []));
  expect(names.toSorted()).toEqual(["shared__echo", expect.stringMatching(/^shared__own/)]);
  const other = names.find((name) => name !== "shared__echo") ?? "";
  expect(other).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);

  const before = tools.got("tools/call").length;
  provider.respond(key, toolCalls([{ name: other, input: { text: "mine" } }]), answers("Done."));
  const final = await answerTo(reader, await say(alice, chat, "call mine"));
  expect(final.tool_calls).toMatchObject([{ server: "shared (own)", tool: "echo" }]);
  expect(own.got("tools/call")).toHaveLength(1);
  expect(tools.got("tools/call")).toHaveLength(before);
});

test("people see only the origin of an operator's server, which may have a key in its address", async () => {
  const { alice } = await setUp();
  const { items } = await alice.call("getToolServers");
  expect(items).toMatchObject([{ operator: true, url: new URL(tools.url).origin }]);
  expect(tools.received.at(-1)?.url).toContain("?api_key=secret");
});

test("grants of an operator's server stay while it does not answer after a restart", async () => {
  const { alice, agent_username, grants, server_id } = await setUp();
  const key = await newKey(alice);
  const chat = await alice.call("startChat", { usernames: [agent_username] });
  provider.respond(key, toolCalls([{ name: "shared__echo", input: { text: "hi" } }]));
  const reader = await alice.connect();
  const first = await answerTo(reader, await say(alice, chat, "go on"));
  await reader[Symbol.asyncDispose]();
  await server.stop();
  const { promise: answering, resolve: answer } = Promise.withResolvers<undefined>();
  tools.answer = () => answering;
  await server.restart();
  const owner = alice.at(server.url);

  const always = grants.map((grant) => ({ ...grant, policy: "always" as const }));
  const { tools: kept } = await owner.call("setAgentTools", { agent_username, grants: always });
  expect(kept).toEqual([{ server_id, tool: "echo", policy: "always", changed: false }]);
  const further = [...grants, { server_id, tool: "other", policy: "ask" as const }];
  const { code, parameters } = await failure(
    owner.call("setAgentTools", { agent_username, grants: further }),
  );
  expect(code).toBe("bad_request");
  expect(parameters?.fields).toEqual({
    "grants.1": "is a tool of a server that has not answered yet",
  });

  provider.respond(key, answers("Done."));
  await using listener = await owner.connect();
  const call_id = first.tool_calls[0]?.id ?? "";
  const approve = () => owner.call("decideToolCall", { call_id, decision: "approve" });
  expect(await failure(approve())).toMatchObject({
    code: "conflict",
    message: expect.stringContaining("has not answered yet"),
  });
  const decided = approve();
  answer(undefined);
  expect((await decided).status).toBe("running");
  const { params: next } = await listener.event(
    "events.messageComplete",
    ({ turn }) => turn?.continues === first.id,
  );
  expect(next.content).toBe("Done.");
  const { items } = await owner.call("getToolCalls", { message_id: first.id });
  expect(items[0]).toMatchObject({ status: "done", result: '{"text":"hi"}' });
});

test("tools of an operator's server can be granted right after a restart", async () => {
  const { alice, agent_username, grants, server_id } = await setUp();
  await server.stop();
  await server.restart();
  const both = [...grants, { server_id, tool: "other", policy: "ask" as const }];
  const { tools: granted } = await alice
    .at(server.url)
    .call("setAgentTools", { agent_username, grants: both });
  expect(granted.map((grant) => grant.tool).sort()).toEqual(["echo", "other"]);
});
