import { expect, test } from "bun:test";
import type { Message } from "@parley/protocol";
import { agentOf, liftLimits, type Person, say, signUp } from "@parley/testkit/client.ts";
import { startCluster } from "@parley/testkit/cluster.ts";
import { answers, toolCalls } from "@parley/testkit/provider-responders.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { ToolServer } from "@parley/testkit/tool-server.ts";
import { newKey } from "@parley/testkit/turns.ts";
import { until } from "@parley/testkit/until.ts";

type Policy = "ask" | "always";
const pay = toolCalls([{ name: "bank__echo", input: { text: "pay" } }], "One moment.");

/** Alice's own conversation with her agent, whose tool does not answer until a test says so. */
async function setUp(url: string, policy: Policy) {
  const tools = new ToolServer();
  const { promise: never } = Promise.withResolvers<Response>();
  tools.answer = ({ message }) => (message.method === "tools/call" ? never : undefined);
  const alice = await signUp(url, "alice");
  await liftLimits(alice);
  const { id: server_id } = await alice.call("addToolServer", { name: "bank", url: tools.url });
  const agent_username = agentOf(alice);
  const grants = [{ server_id, tool: "echo", policy }];
  await alice.call("setAgentTools", { agent_username, grants });
  const chat = await alice.call("startChat", { usernames: [agent_username] });
  return { alice, tools, chat, key: await newKey(alice) };
}

const messagesOf = async (person: Person, chat: { id: string }): Promise<Message[]> =>
  (await person.call("getChatHistory", { chat_id: chat.id })).items;

/** The agent's messages, once there are so many and all of them are complete. */
async function completed(person: Person, chat: { id: string }, count: number): Promise<Message[]> {
  const answersNow = async () =>
    (await messagesOf(person, chat)).filter(({ turn }) => turn !== null);
  await until(async () => {
    const found = await answersNow().catch(() => []);
    return found.length >= count && found.every(({ finalized_at }) => finalized_at !== null);
  }, `${count} answers`);
  return answersNow();
}

const toldModel = (provider: Awaited<ReturnType<typeof startSharedProvider>>, key: string) =>
  JSON.stringify(provider.calls(key).at(-1)?.body.messages);

function expectInterruptedOnce(first: Message | undefined, next: Message | undefined): void {
  expect(first).toMatchObject({
    content: "One moment.",
    turn: { status: "failed", error: { code: "interrupted" } },
    tool_calls: [{ tool: "echo", status: "failed" }],
  });
  expect(next).toMatchObject({
    content: "I do not know whether it was paid.",
    turn: { status: "complete", continues: first?.id },
  });
}

test("a call that ran during kill -9 is not made again, and the model is told", async () => {
  await using provider = await startSharedProvider();
  const env = { ...noRates, ...providersAt(provider.url), PARLEY_PRIVATE_ADDRESSES: "allow" };
  await using server = await startServer(env);
  const { alice, tools, chat, key } = await setUp(server.url, "always");
  await using _ = tools;
  provider.respond(key, pay, answers("I do not know whether it was paid."));
  await say(alice, chat, "pay the bill");
  await tools.has("tools/call");
  await server.kill();
  await server.restart();
  const again = alice.at(server.url);
  const [first, next] = await completed(again, chat, 2);
  expectInterruptedOnce(first, next);
  expect(toldModel(provider, key)).toContain("not known whether it was carried out");
  expect(tools.got("tools/call")).toHaveLength(1);
});

test("an approved call that ran during kill -9 is not made again", async () => {
  await using provider = await startSharedProvider();
  const env = { ...noRates, ...providersAt(provider.url), PARLEY_PRIVATE_ADDRESSES: "allow" };
  await using server = await startServer(env);
  const { alice, tools, chat, key } = await setUp(server.url, "ask");
  await using _ = tools;
  provider.respond(key, pay, answers("I do not know whether it was paid."));
  await say(alice, chat, "pay the bill");
  const [asked] = await completed(alice, chat, 1);
  const call_id = asked?.tool_calls[0]?.id ?? "";
  await alice.call("decideToolCall", { call_id, decision: "approve" });
  await tools.has("tools/call");
  await server.kill();
  await server.restart();
  const again = alice.at(server.url);
  const [first, next] = await completed(again, chat, 2);
  expect(first?.tool_calls).toMatchObject([{ status: "failed" }]);
  expect(next).toMatchObject({
    content: "I do not know whether it was paid.",
    turn: { status: "complete", continues: first?.id },
  });
  expect(toldModel(provider, key)).toContain("not known whether it was carried out");
  expect(tools.got("tools/call")).toHaveLength(1);
});

test("another node does not repeat a call of a node that died", async () => {
  await using provider = await startSharedProvider();
  const env = { ...noRates, ...providersAt(provider.url), PARLEY_PRIVATE_ADDRESSES: "allow" };
  await using cluster = await startCluster({ nodes: 2, env });
  const [first, second] = cluster.nodes;
  if (!first || !second) throw new Error("two nodes were asked for");
  const { alice, tools, chat, key } = await setUp(first.url, "always");
  await using _ = tools;
  provider.respond(key, pay, answers("I do not know whether it was paid."));
  await say(alice, chat, "pay the bill");
  await tools.has("tools/call");
  // The turn runs on one of the two. That one dies, and the other one goes on.
  const [call] = tools.got("tools/call");
  await first.kill();
  await first.restart();
  if (!call?.signal.aborted) {
    await second.kill();
    await second.restart();
  }
  const [ended, next] = await completed(alice, chat, 2);
  expectInterruptedOnce(ended, next);
  expect(tools.got("tools/call")).toHaveLength(1);
});
