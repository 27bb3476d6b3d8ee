import { beforeAll, expect, test } from "bun:test";
import { groupOf, type Person, people } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import type { TestServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import type { Client } from "../src/index.ts";
import { contents, delivered, until } from "./support/clients.ts";
import { Tabs, webLocks } from "./support/tabs.ts";

let server: TestServer;
let ann: Person;
let bob: Person;
beforeAll(async () => {
  server = await sharedServer();
  [ann, bob] = await people(server.url, "ann", "bob");
});
const newChat = async (): Promise<string> => (await groupOf(ann, bob)).id;

const stored = async (chat_id: string): Promise<string[]> =>
  (await ann.call("getChatHistory", { chat_id })).items.map(({ content }) => content);

const offline = (client: Client) => until(client, "status", () => client.status === "offline");

test("every tab knows how many messages are unsent, and signing out deletes them", async () => {
  const chat = await newChat();
  const [cat] = await people(server.url, "cat");
  const tabs = new Tabs();
  await using proxy = await FaultyProxy.to(server.url);
  using one = await tabs.open(cat, server.url);
  using two = await tabs.open(cat, proxy.url);
  expect(one.unsentCount).toBe(0);
  proxy.refuse(true);
  proxy.cut();
  await offline(two);
  two.model.send(chat, "first");
  two.model.send(chat, "second");
  expect([one.unsentCount, two.unsentCount]).toEqual([2, 2]);
  await one.leave();
  expect([one.unsentCount, tabs.items.size]).toEqual([0, 0]);
});

const draftOf = (client: Client, chat: string, text: string) =>
  until(client, `draft:${chat}`, () => client.model.get(`draft:${chat}`) === text);

test("a tab sends what a closed one left unsent when the network is back", async () => {
  const chat = await newChat();
  const tabs = new Tabs();
  await using proxy = await FaultyProxy.to(server.url);
  using stays = await tabs.open(ann, proxy.url);
  await stays.model.openChat(chat);
  {
    using closes = await tabs.open(ann, proxy.url);
    proxy.refuse(true);
    proxy.cut();
    await Promise.all([offline(closes), offline(stays)]);
    closes.model.send(chat, "one");
    closes.model.send(chat, "two");
  }
  proxy.reset();
  await until(stays, `messages:${chat}`, () => contents(stays, chat).length === 2);
  await delivered(stays, chat);
  expect(await stored(chat)).toEqual(["one", "two"]);
  expect(tabs.items.has(`parley:outbox:${ann.username}`)).toBe(false);
});

test("a tab leaves unsent messages to the tab that wrote them, and sends them once that is closed", async () => {
  using _ = webLocks();
  const chat = await newChat();
  const tabs = new Tabs();
  await using proxy = await FaultyProxy.to(server.url);
  using stays = await tabs.open(ann, server.url);
  await stays.model.openChat(chat);
  {
    using closes = await tabs.open(ann, proxy.url);
    proxy.refuse(true);
    proxy.cut();
    await offline(closes);
    closes.model.send(chat, "one");
    closes.model.send(chat, "two");
    await stays.getMe();
    expect(contents(stays, chat)).toEqual([]);
  }
  await until(stays, `messages:${chat}`, () => contents(stays, chat).length === 2);
  await delivered(stays, chat);
  expect(await stored(chat)).toEqual(["one", "two"]);
  expect(tabs.items.has(`parley:outbox:${ann.username}`)).toBe(false);
});

test("unsent messages of several tabs keep the order in which they were written", async () => {
  using _ = webLocks();
  const chat = await newChat();
  const tabs = new Tabs();
  await using proxy = await FaultyProxy.to(server.url);
  using stays = await tabs.open(ann, proxy.url);
  await stays.model.openChat(chat);
  const later = () => new Promise((resolve) => setTimeout(resolve, 2));
  {
    using closes = await tabs.open(ann, proxy.url);
    proxy.refuse(true);
    proxy.cut();
    await Promise.all([offline(closes), offline(stays)]);
    closes.model.send(chat, "one");
    await later();
    stays.model.send(chat, "two");
    await later();
    closes.model.send(chat, "three");
    closes.model.send(chat, "four");
  }
  const written = ["one", "two", "three", "four"];
  const storedTexts = () =>
    JSON.parse(tabs.items.get(`parley:outbox:${ann.username}`) ?? "[]").map(
      ({ content }: { content: string }) => content,
    );
  await until(stays, `messages:${chat}`, () => {
    expect(storedTexts()).toEqual(written);
    return contents(stays, chat).length === 4;
  });
  expect(contents(stays, chat)).toEqual(written);
  proxy.reset();
  await delivered(stays, chat);
  expect(await stored(chat)).toEqual(written);
});

test("a draft that is sent in one tab is gone in the others", async () => {
  const chat = await newChat();
  const tabs = new Tabs();
  using one = await tabs.open(ann, server.url);
  one.model.setDraft(chat, "hello");
  using two = await tabs.open(ann, server.url);
  one.model.setDraft(chat, "hello a");
  one.model.setDraft(chat, "hello all");
  await draftOf(two, chat, "hello all");
  expect(one.model.get(`draft:${chat}`)).toBe("hello all");
  one.model.send(chat, "hello all");
  one.model.setDraft(chat, "");
  await draftOf(two, chat, "");
  expect(one.model.get(`draft:${chat}`)).toBe("");
});

test("a draft that was changed in a tab meanwhile stays there", async () => {
  const chat = await newChat();
  const tabs = new Tabs();
  using one = await tabs.open(ann, server.url);
  using two = await tabs.open(ann, server.url);
  one.model.setDraft(chat, "hello");
  two.model.setDraft(chat, "good morning");
  await draftOf(one, chat, "good morning");
  expect(two.model.get(`draft:${chat}`)).toBe("good morning");
});
