import { expect, test } from "bun:test";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { groupOf, say, signUp } from "@parley/testkit/client.ts";
import { startCluster } from "@parley/testkit/cluster.ts";
import { hang, type ReceivedHook, startReceiver } from "@parley/testkit/receiver.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";

const env = { ...noRates, ...serviceKeySetting(), PARLEY_PRIVATE_ADDRESSES: "allow" };
const events = ["events.messageNew"];

const contentsOf = (received: readonly ReceivedHook[], chat: { id: string }) =>
  received
    .filter(({ data }) => data.params.conversation_id === chat.id)
    .map(({ data }) => String(data.params.content));

/** The contents in the order in which each came first. */
const firsts = (contents: readonly string[]) => [...new Set(contents)];

const numbered = (count: number, from = 0) =>
  Array.from({ length: count }, (_, place) => `message ${from + place}`);

/** What was sent again has the id that it had before. */
function expectStableIds(received: readonly ReceivedHook[]): void {
  const ids = received.map(({ headers, data }) => `${headers["webhook-id"]} ${data.params.id}`);
  const webhookIds = received.map(({ headers }) => headers["webhook-id"]);
  expect(new Set(ids).size).toBe(new Set(webhookIds).size);
  expect(new Set(ids).size).toBe(new Set(received.map(({ data }) => data.params.id)).size);
}

test("kill -9 during a delivery loses no event and keeps the order", async () => {
  await using server = await startServer(env);
  let accepted = 0;
  // The first server dies while the sixth request of each conversation waits for its answer.
  await using receiver = startReceiver(() => (++accepted <= 10 ? new Response("ok") : hang()));
  const [alice, bob] = [await signUp(server.url, "alice"), await signUp(server.url, "bob")];
  const chats = [await groupOf(alice, bob), await groupOf(alice, bob)];
  await new Backend(server.url).call("createWebhook", { url: receiver.url, events });
  for (const content of numbered(20)) {
    for (const chat of chats) await say(alice, chat, content);
  }
  await receiver.has(12);
  await server.kill();
  receiver.answer(() => new Response("ok"));
  await server.restart();
  const again = alice.at(server.url);
  for (const chat of chats) await say(again, chat, "message 20");
  const isComplete = () =>
    chats.every((chat) => contentsOf(receiver.received, chat).includes("message 20"));
  await until(isComplete, "all messages");
  for (const chat of chats) {
    expect(firsts(contentsOf(receiver.received, chat))).toEqual(numbered(21));
  }
  expectStableIds(receiver.received);
});

test("when another node takes over, no delivery is lost and the order stays", async () => {
  await using cluster = await startCluster({ nodes: 2, env });
  const [first, second] = cluster.nodes as [
    (typeof cluster.nodes)[number],
    (typeof cluster.nodes)[number],
  ];
  await using receiver = startReceiver(async () => {
    await Bun.sleep(5);
    return new Response("ok");
  });
  const [alice, bob] = [await signUp(second.url, "alice"), await signUp(second.url, "bob")];
  const chats = [await groupOf(alice, bob), await groupOf(alice, bob)];
  await new Backend(first.url).call("createWebhook", { url: receiver.url, events });
  const sendAll = async (from: number) => {
    for (const content of numbered(15, from)) {
      for (const chat of chats) await say(alice, chat, content);
    }
  };
  await sendAll(0);
  await receiver.has(6);
  await first.kill();
  await sendAll(15);
  const isComplete = () =>
    chats.every((chat) => contentsOf(receiver.received, chat).includes("message 29"));
  await until(isComplete, "all messages");
  for (const chat of chats) {
    expect(firsts(contentsOf(receiver.received, chat))).toEqual(numbered(30));
  }
  expectStableIds(receiver.received);
});
