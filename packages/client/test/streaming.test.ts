import { beforeAll, describe, expect, test } from "bun:test";
import { type Person, people } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import type { TestServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import type { Client, LocalMessage } from "../src/index.ts";
import { connected, online, until } from "./support/clients.ts";
import { equalsServer, loadAll } from "./support/view.ts";

let server: TestServer;
let ann: Person;
beforeAll(async () => {
  server = await sharedServer();
  [ann] = await people(server.url, "ann");
  await ann.call("setAgentKey", { provider: "claude", api_key: "sandbox-1234567890" });
});
const agentChat = async (): Promise<string> =>
  (await ann.call("startChat", { usernames: [`${ann.username}:claude`], kind: "direct" })).id;

const answers = (client: Client, chat: string): LocalMessage[] =>
  client.model.get(`messages:${chat}`).items.filter(({ sender }) => sender.kind === "agent");

const streaming = (client: Client, chat: string, id: string | undefined, bytes = 1) =>
  until(client, `messages:${chat}`, () => {
    const answer = answers(client, chat).at(-1);
    return answer?.id !== id && (answer?.content.length ?? 0) >= bytes && answer;
  });

const finished = (client: Client, chat: string, id: string) =>
  until(client, `messages:${chat}`, () =>
    answers(client, chat).find((each) => each.id === id && each.finalized_at !== null),
  );

/** Records every content of the message, to check that it only grows. */
function growthOf(client: Client, chat: string, id: string): { seen: string[]; stop(): void } {
  const seen: string[] = [];
  const stop = client.model.watch(`messages:${chat}`, () => {
    const message = answers(client, chat).find((each) => each.id === id);
    if (message && message.content !== seen.at(-1)) seen.push(message.content);
  });
  return { seen, stop };
}

describe("an agent's answer", () => {
  test("appears as it streams, and the agent is typing until it is complete", async () => {
    const chat = await agentChat();
    using client = await connected(ann, server.url);
    await client.model.openChat(chat);
    const before = answers(client, chat).at(-1)?.id;
    client.model.send(chat, "form");
    const { id, turn } = await streaming(client, chat, before);
    expect(turn?.status).toBe("streaming");
    expect(client.model.get(`typing:${chat}`).actors).toHaveLength(1);
    const { seen, stop } = growthOf(client, chat, id);
    const { content } = await finished(client, chat, id);
    stop();
    expect(seen.length).toBeGreaterThan(1);
    for (const each of seen) expect(content.startsWith(each)).toBe(true);
    await until(client, `typing:${chat}`, () => !client.model.get(`typing:${chat}`).actors.length);
    await equalsServer(client, ann);
  });

  test("continues after cut connections, and is complete byte for byte", async () => {
    const chat = await agentChat();
    await using proxy = await FaultyProxy.to(server.url);
    using client = await connected(ann, proxy.url);
    await client.model.openChat(chat);
    const before = answers(client, chat).at(-1)?.id;
    client.model.send(chat, "long");
    const { id } = await streaming(client, chat, before);
    const { seen, stop } = growthOf(client, chat, id);
    for (let length = 100; length <= 1500; length += 200) {
      await until(client, `messages:${chat}`, () => (seen.at(-1)?.length ?? 0) >= length);
      if (length % 400 === 100) proxy.cut();
      else proxy.cutAfter(length, "toClient");
    }
    const { content } = await finished(client, chat, id);
    stop();
    for (const each of seen) expect(content.startsWith(each)).toBe(true);
    await loadAll(client);
    await equalsServer(client, ann);
    expect(proxy.accepted).toBeGreaterThan(5);
  });

  test("continues in a conversation that is opened while it streams", async () => {
    const chat = await agentChat();
    using first = await connected(ann, server.url);
    await first.model.openChat(chat);
    const before = answers(first, chat).at(-1)?.id;
    // Slow enough to go on until the conversation is opened.
    first.model.send(chat, "slow");
    const { id } = await streaming(first, chat, before, 40);
    using second = await connected(ann, server.url);
    await second.model.openChat(chat);
    const { seen, stop } = growthOf(second, chat, id);
    await until(second, `messages:${chat}`, () => seen.length > 1);
    await ann.call("stopChatAgents", { chat_id: chat });
    const { content } = await finished(second, chat, id);
    stop();
    for (const each of seen) expect(content.startsWith(each)).toBe(true);
  });

  test("is shown as last_message in a conversation that is not opened", async () => {
    const chat = await agentChat();
    using client = await connected(ann, server.url);
    await ann.call("sendMessage", { chat_id: chat, content: "alert" });
    const last = () => client.model.get(`chat:${chat}`)?.last_message;
    const partly = await until(client, `chat:${chat}`, () => {
      const message = last();
      return message?.finalized_at === null && message.content !== "" && message;
    });
    await until(client, `chat:${chat}`, () => last()?.finalized_at);
    expect(last()?.content).toStartWith(partly.content);
  });

  test("is complete after a reconnect if it ended while disconnected", async () => {
    const chat = await agentChat();
    await using proxy = await FaultyProxy.to(server.url);
    using client = await connected(ann, proxy.url);
    using other = await connected(ann, server.url);
    await client.model.openChat(chat);
    await other.model.openChat(chat);
    const before = answers(client, chat).at(-1)?.id;
    client.model.send(chat, "buy");
    const { id } = await streaming(client, chat, before);
    proxy.refuse(true);
    proxy.cut();
    await until(client, "status", () => client.status === "offline");
    const whole = await finished(other, chat, id);
    proxy.reset();
    await online(client);
    expect(answers(client, chat).at(-1)).toEqual(whole);
    await equalsServer(client, ann);
  });
});
