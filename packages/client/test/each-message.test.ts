import { beforeAll, expect, test } from "bun:test";
import { Backend } from "@parley/testkit/backend.ts";
import { groupOf, people, say } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { limits, startServer, type TestServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import type { EachOptions } from "../src/index.ts";
import { connected, memoryStorage, online, type TestClient } from "./support/clients.ts";

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
/** Collects what a listener receives, by conversation; `until` waits for a message. */
function collector(client: TestClient, options: EachOptions = {}, work = async () => {}) {
  const got: Record<string, string[]> = {};
  let notify = () => {};
  const stop = client.eachMessage(async ({ conversation_id, content }) => {
    got[conversation_id] = [...(got[conversation_id] ?? []), content];
    notify();
    await work();
  }, options);
  const until = (chatId: string, content: string) =>
    new Promise<string[]>((resolve) => {
      notify = () => {
        const contents = got[chatId] ?? [];
        if (contents.includes(content)) resolve(contents);
      };
      notify();
    });
  return { got, until, stop };
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `${from + index}`);

test("every message is delivered once and in order when connections are cut", async () => {
  const [bot, ann, bob] = await people(server.url, "bot", "ann", "bob");
  const chats = await Promise.all([groupOf(ann, bob, bot), groupOf(bob, bot)]);
  await say(bob, chats[0], "before");
  await using proxy = await FaultyProxy.to(server.url);
  using client = await connected(bot, proxy.url);
  const { got, until } = collector(client, {}, () => Bun.sleep(Math.random() * 3));
  await client.getMe();
  for (const n of numbers(0, 120)) {
    await Promise.all(chats.map((chat) => say(bob, chat, n)));
    const { id } = await say(bob, chats[0], `${n} edited`);
    await bob.call("editMessage", { message_id: id, content: `${n} and more` });
    if (Number(n) % 10 === 3) proxy.cut();
    if (Number(n) % 10 === 7) proxy.cutAfter(1500, "toClient");
  }
  proxy.reset();
  for (const chat of chats) await say(bob, chat, "end");
  for (const chat of chats) await until(chat.id, "end");
  expect(got[chats[1].id]).toEqual([...numbers(0, 120), "end"]);
  const first = got[chats[0].id] ?? [];
  expect(first.filter((content) => /^\d+$/.test(content))).toEqual(numbers(0, 120));
  expect(first).toHaveLength(241);
});

test("all messages of a conversation that started while disconnected are delivered", async () => {
  const [bot, ann] = await people(server.url, "bot", "ann");
  await using proxy = await FaultyProxy.to(server.url);
  using client = await connected(bot, proxy.url);
  const { until } = collector(client);
  const old = await groupOf(ann, bot);
  await say(ann, old, "known");
  await until(old.id, "known");
  proxy.refuse(true);
  proxy.cut();
  const chat = await groupOf(ann, bot);
  for (const content of ["one", "two", "three"]) await say(ann, chat, content);
  proxy.reset();
  await online(client);
  expect(await until(chat.id, "three")).toEqual(["one", "two", "three"]);
});

test("imported messages are not delivered, and those around them are", async () => {
  const [bot, ann] = await people(server.url, "bot", "ann");
  const chat = await groupOf(ann, bot);
  const backend = new Backend(server.url);
  const importMany = (prefix: string) =>
    backend.call("importMessages", {
      chat_id: chat.id,
      messages: numbers(0, 150).map((n) => ({
        sender: ann.username,
        content: `${prefix} ${n}`,
        created_at: "2024-05-01T09:30:00.000Z",
        client_msg_id: `${prefix} ${n}`,
      })),
    });
  await using proxy = await FaultyProxy.to(server.url);
  using client = await connected(bot, proxy.url);
  const { got, until } = collector(client);
  await say(ann, chat, "one");
  await importMany("live");
  await say(ann, chat, "two");
  await until(chat.id, "two");
  proxy.refuse(true);
  proxy.cut();
  await say(ann, chat, "three");
  await importMany("missed");
  const other = await groupOf(ann, bot);
  await say(ann, other, "four");
  proxy.reset();
  await online(client);
  await until(other.id, "four");
  await say(ann, chat, "five");
  expect(await until(chat.id, "five")).toEqual(["one", "two", "three", "five"]);
  expect(got[other.id]).toEqual(["four"]);
});

test("with a storage a later process continues where the earlier one stopped", async () => {
  const [bot, ann] = await people(server.url, "bot", "ann");
  const chat = await groupOf(ann, bot);
  const storage = memoryStorage();
  const first = await connected(bot, server.url);
  const earlier = collector(first, { storage });
  await first.getMe();
  for (const n of numbers(0, 3)) await say(ann, chat, n);
  await earlier.until(chat.id, "2");
  await first.getMe();
  first.close();
  for (const n of numbers(3, 250)) await say(ann, chat, n);
  using second = await connected(bot, server.url);
  const { until } = collector(second, { storage });
  expect(await until(chat.id, "249")).toEqual(numbers(3, 250));
  // Another name has positions of its own, and starts with new messages.
  const other = collector(second, { storage, name: "other" });
  await second.getMe();
  await say(ann, chat, "250");
  expect(await other.until(chat.id, "250")).toEqual(["250"]);
});

test("onError is called when the listener throws, and the next message follows", async () => {
  const [bot, ann] = await people(server.url, "bot", "ann");
  const chat = await groupOf(ann, bot);
  using client = await connected(bot, server.url);
  const failures: string[] = [];
  const done = Promise.withResolvers<void>();
  client.eachMessage(
    async ({ content }) => {
      if (content === "last") done.resolve();
      else throw new Error(`cannot handle ${content}`);
    },
    { onError: (error, { content }) => failures.push(`${content}: ${error}`) },
  );
  await client.getMe();
  for (const content of ["bad", "last"]) await say(ann, chat, content);
  await done.promise;
  expect(failures).toEqual(["bad: Error: cannot handle bad"]);
});

test("a listener whose call fails with unavailable is called again", async () => {
  const [bot, ann] = await people(server.url, "bot", "ann");
  const chat = await groupOf(ann, bot);
  await using proxy = await FaultyProxy.to(server.url);
  using client = await connected(bot, proxy.url);
  const failures: unknown[] = [];
  const done = Promise.withResolvers<void>();
  let cuts = 5;
  client.eachMessage(
    async ({ id, content, sender }) => {
      if (sender.username === bot.username) return;
      const client_msg_id = `answer-${id}`;
      const sending = client.sendMessage({
        chat_id: chat.id,
        content: `to ${content}`,
        client_msg_id,
      });
      if (cuts-- > 0) proxy.cut();
      await sending;
      if (content === "last") done.resolve();
    },
    { onError: (error) => failures.push(error) },
  );
  await client.getMe();
  for (const content of ["first", "second", "last"]) await say(ann, chat, content);
  await done.promise;
  expect(failures).toEqual([]);
  const { items } = await ann.call("getChatHistory", { chat_id: chat.id });
  const answers = items.map(({ content }) => content).filter((text) => text.startsWith("to "));
  expect(answers).toEqual(["to first", "to second", "to last"]);
});

test("a listener that is rate limited is called again before the next message", async () => {
  await using slow = await startServer(limits({ messages_per_second: 1, message_burst: 1 }));
  const [bot, ann, bob] = await people(slow.url, "bot", "ann", "bob");
  const chat = await groupOf(ann, bob, bot);
  using client = await connected(bot, slow.url);
  const failures: unknown[] = [];
  const answered: string[] = [];
  const done = Promise.withResolvers<void>();
  client.eachMessage(
    async ({ id, content, sender }) => {
      if (sender.username === bot.username) return;
      const client_msg_id = `answer-${id}`;
      await client.sendMessage({ chat_id: chat.id, content: "noted", client_msg_id });
      answered.push(content);
      if (answered.length === 2) done.resolve();
    },
    { onError: (error) => failures.push(error) },
  );
  await client.getMe();
  await say(ann, chat, "first");
  await say(bob, chat, "second");
  await done.promise;
  expect(failures).toEqual([]);
  expect(answered).toEqual(["first", "second"]);
});
