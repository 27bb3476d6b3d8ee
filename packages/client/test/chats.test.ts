import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { groupOf, type Person, people, say } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { limits, startServer, type TestServer } from "@parley/testkit/server.ts";
import {
  codeOf,
  connected,
  contents,
  memoryStorage,
  online,
  openedGroup,
  until,
} from "./support/clients.ts";

let server: TestServer;
let ann: Person;
let bob: Person;
let cat: Person;
beforeAll(async () => {
  server = await startServer(
    limits({ messages_per_second: 0, operations_per_second: 0, sockets_per_user: 100 }),
  );
  [ann, bob, cat] = await people(server.url, "ann", "bob", "cat");
});
afterAll(() => server[Symbol.asyncDispose]());

describe("a conversation", () => {
  test("appears in all clients of all participants when it is started", async () => {
    using one = await connected(ann, server.url);
    using two = await connected(ann, server.url);
    using other = await connected(bob, server.url);
    const { id } = await one.startChat({ usernames: [bob.username], title: "New" });
    expect(one.model.get("chats")[0]).toBe(id);
    for (const client of [two, other]) {
      await until(client, "chats", () => client.model.get("chats")[0] === id);
    }
  });

  test("moves up with a message, and counts unread messages by kind of sender", async () => {
    using client = await connected(bob, server.url);
    const older = await groupOf(ann, bob);
    const newer = await groupOf(ann, bob);
    await until(client, "chats", () => client.model.get("chats")[0] === newer.id);
    await say(ann, older, `look @${bob.username}`);
    await until(client, "chats", () => client.model.get("chats")[0] === older.id);
    const before = client.model.get("unread");
    await say(ann, older, "and here");
    await until(client, "unread", () => client.model.get("unread").human === before.human + 1);
    expect(client.model.get(`chat:${older.id}`)?.unread).toEqual({
      human: 2,
      agent: 0,
      mentions: 1,
    });
  });

  test("disappears when the caller is removed, and is complete when they are added again", async () => {
    const group = await groupOf(ann, bob, cat);
    await say(ann, group, "before");
    using client = await connected(cat, server.url);
    await client.model.openChat(group.id);
    const member = { chat_id: group.id, username: cat.username };
    await ann.call("removeChatMember", member);
    await until(client, "chats", () => !client.model.get("chats").includes(group.id));
    expect(client.model.get(`chat:${group.id}`)).toBeNull();
    expect(client.model.get(`messages:${group.id}`).loaded).toBe(false);
    await say(ann, group, "meanwhile");
    await ann.call("addChatMembers", { chat_id: group.id, usernames: [cat.username] });
    await until(client, `messages:${group.id}`, () => contents(client, group.id).length === 2);
    expect(contents(client, group.id)).toEqual(["before", "meanwhile"]);
  });

  test("keeps the text of unsent messages as failed when the caller is removed", async () => {
    const group = await groupOf(ann, bob, cat);
    const storage = memoryStorage();
    await using proxy = await FaultyProxy.to(server.url);
    {
      using client = await connected(cat, proxy.url, { storage });
      await client.model.openChat(group.id);
      proxy.refuse(true);
      proxy.cut();
      await until(client, "status", () => client.status === "offline");
      client.model.send(group.id, "a long text");
      await ann.call("removeChatMember", { chat_id: group.id, username: cat.username });
      proxy.reset();
      await until(client, "chats", () => !client.model.get("chats").includes(group.id));
    }
    using again = await connected(cat, proxy.url, { storage });
    const unsent = () => again.model.get(`messages:${group.id}`).items;
    expect(unsent()).toMatchObject([{ content: "a long text", delivery: "failed" }]);
    again.model.discard(unsent()[0]?.id ?? "");
    expect(unsent()).toEqual([]);
  });

  test("discards unsent messages when the caller leaves", async () => {
    const group = await groupOf(ann, bob);
    using client = await connected(bob, server.url);
    client.model.send(group.id, " ");
    await until(
      client,
      `messages:${group.id}`,
      () => client.model.get(`messages:${group.id}`).items[0]?.delivery === "failed",
    );
    await client.leaveChat({ chat_id: group.id });
    expect(contents(client, group.id)).toEqual([]);
  });

  test("disappears at once when the caller leaves", async () => {
    const group = await groupOf(ann, bob);
    using client = await connected(bob, server.url);
    await client.leaveChat({ chat_id: group.id });
    expect(client.model.get(`chat:${group.id}`)).toBeNull();
  });

  test("cannot be opened by others", async () => {
    const group = await groupOf(ann, bob);
    using client = await connected(cat, server.url);
    expect(await codeOf(client.model.openChat(group.id))).toBe("forbidden");
    expect(await codeOf(client.model.openChat(Bun.randomUUIDv7()))).toBe("not_found");
  });

  test("shows read positions", async () => {
    using opened = await openedGroup(ann, bob, server.url);
    const { chat, client, message } = opened;
    const read = () => client.model.get(`chat:${chat}`)?.reads;
    expect(read()).toEqual({ [ann.username]: 0, [bob.username]: message.seq });
    const isTold = new Promise((resolve) => client.on("events.chatRead", resolve));
    client.model.markRead(chat);
    expect(client.model.get(`chat:${chat}`)?.unread_count).toBe(0);
    expect(read()?.[ann.username]).toBe(message.seq);
    await isTold;
    expect((await ann.call("getChat", { chat_id: chat })).unread_count).toBe(0);
  });

  test("with more participants than lists contain has all of them once it is opened", async () => {
    const crowd = await Promise.all(
      Array.from({ length: 60 }, (_, count) => people(server.url, `crowd${count}`)),
    );
    const group = await groupOf(ann, ...crowd.flat(), bob);
    using client = await connected(ann, server.url);
    expect(client.model.get(`chat:${group.id}`)?.participants).toHaveLength(50);
    await client.model.openChat(group.id);
    const names = () => client.model.get(`chat:${group.id}`)?.participants.length;
    await until(client, `chat:${group.id}`, () => names() === 62);
    await ann.call("removeChatMember", { chat_id: group.id, username: bob.username });
    await until(client, `chat:${group.id}`, () => names() === 61);
    expect(client.model.get("chats")).toContain(group.id);
  });
});

describe("the list", () => {
  test("loads page by page, and all pages are kept up to date", async () => {
    const [eve] = await people(server.url, "eve");
    const ids: string[] = [];
    for (let count = 0; count < 55; count++) {
      ids.unshift((await eve.call("startChat", { usernames: [], title: `${count}` })).id);
    }
    await using proxy = await FaultyProxy.to(server.url);
    using client = await connected(eve, proxy.url);
    expect(client.model.get("chats")).toEqual(ids.slice(0, 50));
    expect(await client.model.loadMoreChats()).toBe(false);
    expect(client.model.get("chats")).toEqual(ids);
    proxy.refuse(true);
    proxy.cut();
    const oldest = ids.at(-1) ?? "";
    await say(eve, { id: oldest }, "up");
    proxy.reset();
    await until(client, "chats", () => client.model.get("chats")[0] === oldest);
    expect(client.model.get("chats")).toHaveLength(55);
    await online(client);
  });

  test("adds a conversation of a page that is not loaded when it gets a message", async () => {
    const [eve] = await people(server.url, "eve");
    const old = await eve.call("startChat", { usernames: [], title: "old" });
    for (let count = 0; count < 50; count++) {
      await eve.call("startChat", { usernames: [], title: `${count}` });
    }
    using client = await connected(eve, server.url);
    expect(client.model.get("chats")).not.toContain(old.id);
    await say(eve, old, "up");
    await until(client, "chats", () => client.model.get("chats")[0] === old.id);
  });
});

describe("agents", () => {
  test("that are created or deleted appear and disappear in all clients of their owner", async () => {
    using one = await connected(cat, server.url);
    using two = await connected(cat, server.url);
    const agent = { name: "research", kind: "model", provider: "claude" } as const;
    const { username } = await one.createAgent(agent);
    for (const client of [one, two]) {
      const has = () => client.model.get("agents").some((each) => each.username === username);
      await until(client, "agents", has);
    }
    const start = () => one.startChat({ usernames: [username], kind: "direct", new: true });
    const [first, second] = [await start(), await start()];
    await until(two, "chats", () => two.model.get("chats")[0] === second.id);
    await one.setChatTitle({ chat_id: first.id, title: "Plans" });
    await until(
      two,
      `chat:${first.id}`,
      () => two.model.get(`chat:${first.id}`)?.title === "Plans",
    );
    await one.deleteAgent({ agent_username: username });
    for (const client of [one, two]) {
      const has = () => client.model.get("agents").some((each) => each.username === username);
      await until(client, "agents", () => !has());
    }
  });

  test("have the settings that another client of their owner has chosen", async () => {
    using one = await connected(cat, server.url);
    using two = await connected(cat, server.url);
    const gpt = () => two.model.get("agents").find(({ provider }) => provider === "gpt");
    await one.setAgentProfile({ provider: "gpt", model: "another-model" });
    await until(two, "agents", () => gpt()?.model === "another-model");
    await one.setAgentLimits({ provider: "gpt", daily_tokens: 4321 });
    await until(two, "agents", () => gpt()?.limits.daily_tokens === 4321);
  });

  test("are loaded at the start and after every change", async () => {
    using client = await connected(cat, server.url);
    const claude = () => client.model.get("agents").find(({ provider }) => provider === "claude");
    expect(claude()?.key_configured).toBe(false);
    await client.setAgentKey({ provider: "claude", api_key: "sandbox-1234567890" });
    expect(claude()).toMatchObject({ key_configured: true, key_tail: "••••••••7890" });
    await client.setAgentProfile({ provider: "claude", display_name: "Clo" });
    expect(claude()?.display_name).toBe("Clo");
    await cat.call("removeAgentKey", { provider: "claude" });
    await client.model.refreshAgents();
    expect(claude()?.key_configured).toBe(false);
  });
});
