import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { groupOf, type Person, people, say } from "@parley/testkit/client.ts";
import { FaultyLine } from "@parley/testkit/proxy.ts";
import { limits, startServer, type TestServer } from "@parley/testkit/server.ts";
import { isCallError, type LocalMessage } from "../src/index.ts";
import {
  connected,
  contents,
  delivered,
  online,
  type TestClient,
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

const first = (client: TestClient, chat: string): LocalMessage => {
  const [message] = client.model.get(`messages:${chat}`).items;
  if (!message) throw new Error("there is no message");
  return message;
};

/** A group of Ann and Bob with one message of Bob's, opened by Ann. */
async function openedByAnn(url = server.url) {
  const { id: chat } = await groupOf(ann, bob);
  const message = await say(bob, { id: chat }, "hello");
  const client = await connected(ann, url);
  await client.model.openChat(chat);
  const reads = () => client.model.get(`chat:${chat}`)?.reads[ann.username];
  await until(client, `chat:${chat}`, () => reads() !== undefined);
  return { chat, message, client };
}

const codeOf = async (call: Promise<unknown>): Promise<string | undefined> => {
  const error = await call.catch((thrown: unknown) => thrown);
  return isCallError(error) ? error.code : undefined;
};

describe("a conversation", () => {
  test("that somebody starts appears, for all clients of all its people", async () => {
    using one = await connected(ann, server.url);
    using two = await connected(ann, server.url);
    using other = await connected(bob, server.url);
    const { id } = await one.startChat({ usernames: [bob.username], title: "New" });
    expect(one.model.get("chats")[0]).toBe(id);
    for (const client of [two, other]) {
      await until(client, "chats", () => client.model.get("chats")[0] === id);
    }
  });

  test("moves up with a message, and counts what is unread by kind", async () => {
    using client = await connected(bob, server.url);
    const older = await groupOf(ann, bob);
    await groupOf(ann, bob);
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

  test("somebody is removed from disappears, and comes back whole when they do", async () => {
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

  test("that is left is gone at once", async () => {
    const group = await groupOf(ann, bob);
    using client = await connected(bob, server.url);
    await client.leaveChat({ chat_id: group.id });
    expect(client.model.get(`chat:${group.id}`)).toBeNull();
  });

  test("that cannot be seen cannot be opened", async () => {
    const group = await groupOf(ann, bob);
    using client = await connected(cat, server.url);
    expect(await codeOf(client.model.openChat(group.id))).toBe("forbidden");
    expect(await codeOf(client.model.openChat(Bun.randomUUIDv7()))).toBe("not_found");
  });

  test("shows who has read how far", async () => {
    const { chat, client, message } = await openedByAnn();
    const read = () => client.model.get(`chat:${chat}`)?.reads;
    expect(read()).toEqual({ [ann.username]: 0, [bob.username]: message.seq });
    const isTold = new Promise((resolve) => client.on("events.chatRead", resolve));
    client.model.markRead(chat);
    expect(client.model.get(`chat:${chat}`)?.unread_count).toBe(0);
    expect(read()?.[ann.username]).toBe(message.seq);
    await isTold;
    expect((await ann.call("getChat", { chat_id: chat })).unread_count).toBe(0);
    client.close();
  });

  test("of more people than lists show is known whole once it is opened", async () => {
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
  test("loads page by page, and all of it is followed", async () => {
    const [eve] = await people(server.url, "eve");
    const ids: string[] = [];
    for (let count = 0; count < 55; count++) {
      ids.unshift((await eve.call("startChat", { usernames: [], title: `${count}` })).id);
    }
    await using proxy = await FaultyLine.to(server.url);
    using client = await connected(eve, proxy.url);
    expect(client.model.get("chats")).toEqual(ids.slice(0, 50));
    expect(await client.model.loadMoreChats()).toBe(false);
    expect(client.model.get("chats")).toEqual(ids);
    proxy.refuse(true);
    proxy.cut();
    const oldest = ids.at(-1) ?? "";
    await say(eve, { id: oldest }, "up");
    proxy.calm();
    await until(client, "chats", () => client.model.get("chats")[0] === oldest);
    expect(client.model.get("chats")).toHaveLength(55);
    await online(client);
  });

  test("shows a conversation further down as soon as something happens in it", async () => {
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

describe("messages", () => {
  test("load page by page, without gaps, while others come", async () => {
    const group = await groupOf(ann, bob);
    const expected: string[] = [];
    for (let count = 0; count < 120; count++) {
      expected.push(`${count}`);
      await say(ann, group, `${count}`);
    }
    using client = await connected(bob, server.url);
    await client.model.openChat(group.id);
    const window = () => client.model.get(`messages:${group.id}`);
    expect(window()).toMatchObject({ hasOlder: true, loaded: true });
    expect(contents(client, group.id)).toEqual(expected.slice(-50));
    const loading = client.model.loadOlder(group.id);
    await say(ann, group, "new");
    await loading;
    await client.model.loadOlder(group.id);
    await until(client, `messages:${group.id}`, () => contents(client, group.id).at(-1) === "new");
    expect(window().hasOlder).toBe(false);
    expect(contents(client, group.id)).toEqual([...expected, "new"]);
  });

  test("are edited and deleted for everyone who looks", async () => {
    const { chat, client, message } = await openedByAnn();
    await bob.call("editMessage", { message_id: message.id, content: "hello there" });
    await until(client, `messages:${chat}`, () => first(client, chat).edited_at !== null);
    expect(contents(client, chat)).toEqual(["hello there"]);
    await bob.call("deleteMessages", { chat_id: chat, message_ids: [message.id] });
    await until(client, `messages:${chat}`, () => contents(client, chat).length === 0);
    expect(client.model.get(`chat:${chat}`)).toMatchObject({
      last_message: null,
      unread_count: 0,
    });
    client.close();
  });

  test("of one's own are changed at once, and changed back if the service refuses", async () => {
    const { chat, client, message } = await openedByAnn();
    client.model.send(chat, "mine");
    await delivered(client, chat);
    const mine = client.model.get(`messages:${chat}`).items.at(-1)?.id ?? "";
    const edited = client.model.edit(mine, "still mine");
    expect(contents(client, chat)).toEqual(["hello", "still mine"]);
    await edited;
    expect(contents(client, chat)).toEqual(["hello", "still mine"]);
    const refused = client.model.edit(message.id, "not mine");
    expect(contents(client, chat)).toEqual(["not mine", "still mine"]);
    expect(await codeOf(refused)).toBe("forbidden");
    expect(contents(client, chat)).toEqual(["hello", "still mine"]);
    const removed = client.model.remove(chat, [mine], "everyone");
    expect(contents(client, chat)).toEqual(["hello"]);
    await removed;
    expect(contents(client, chat)).toEqual(["hello"]);
    client.close();
  });

  test("of others may be hidden, and not deleted", async () => {
    const group = await groupOf(bob, ann);
    const { id } = await say(bob, group, "hello");
    using client = await connected(ann, server.url);
    await client.model.openChat(group.id);
    const refused = client.model.remove(group.id, [id], "everyone");
    expect(contents(client, group.id)).toEqual([]);
    expect(await codeOf(refused)).toBe("forbidden");
    expect(contents(client, group.id)).toEqual(["hello"]);
    await client.model.remove(group.id, [id], "me");
    expect(contents(client, group.id)).toEqual([]);
    await until(
      client,
      `chat:${group.id}`,
      () => !client.model.get(`chat:${group.id}`)?.unread_count,
    );
    expect(client.model.get(`chat:${group.id}`)?.last_message).toBeNull();
  });

  test("show reactions, one's own as such", async () => {
    const { chat, client, message } = await openedByAnn();
    const reactions = () => first(client, chat).reactions;
    const reacting = client.model.react(message.id, "👍");
    expect(reactions()).toEqual([{ emoji: "👍", count: 1, reacted: true }]);
    await reacting;
    await bob.call("addReaction", { message_id: message.id, emoji: "👍" });
    await until(client, `messages:${chat}`, () => reactions()[0]?.count === 2);
    await bob.call("editMessage", { message_id: message.id, content: "edited" });
    await until(client, `messages:${chat}`, () => contents(client, chat)[0] === "edited");
    expect(reactions()).toEqual([{ emoji: "👍", count: 2, reacted: true }]);
    await client.model.react(message.id, "👍");
    expect(reactions()).toEqual([{ emoji: "👍", count: 1, reacted: false }]);
    expect(await codeOf(client.model.react(message.id, "no emoji"))).toBe("bad_request");
    expect(reactions()).toEqual([{ emoji: "👍", count: 1, reacted: false }]);
    client.close();
  });

  test("changed while the line is down are changed when it is back", async () => {
    await using proxy = await FaultyLine.to(server.url);
    const { chat, client, message } = await openedByAnn(proxy.url);
    client.model.send(chat, "mine");
    await delivered(client, chat);
    const mine = client.model.get(`messages:${chat}`).items.at(-1)?.id ?? "";
    proxy.refuse(true);
    proxy.cut();
    await until(client, "status", () => client.status === "offline");
    const changes = [client.model.edit(mine, "edited"), client.model.react(message.id, "🎉")];
    client.model.markRead(chat);
    expect(contents(client, chat)).toEqual(["hello", "edited"]);
    proxy.calm();
    await Promise.all(changes);
    const { items } = await ann.call("getChatHistory", { chat_id: chat });
    expect(items.map(({ content }) => content)).toEqual(["hello", "edited"]);
    expect(items[0]?.reactions).toEqual([{ emoji: "🎉", count: 1, reacted: true }]);
    client.close();
  });
});

describe("typing", () => {
  test("is shown to the others until what was typed arrives", async () => {
    const { chat, client } = await openedByAnn();
    using writer = await connected(bob, server.url);
    const actors = () => client.model.get(`typing:${chat}`).actors.map(({ username }) => username);
    writer.model.typing(chat);
    writer.model.typing(chat);
    await until(client, `typing:${chat}`, () => actors().length === 1);
    expect(actors()).toEqual([bob.username]);
    expect(writer.model.get(`typing:${chat}`).actors).toEqual([]);
    writer.model.send(chat, "done");
    await until(client, `messages:${chat}`, () => contents(client, chat).at(-1) === "done");
    expect(actors()).toEqual([]);
    // The next keystroke counts again.
    writer.model.typing(chat);
    await until(client, `typing:${chat}`, () => actors().length === 1);
    client.close();
  });

  test("is forgotten with the connection", async () => {
    await using proxy = await FaultyLine.to(server.url);
    const { chat, client } = await openedByAnn(proxy.url);
    await bob.call("sendChatAction", { chat_id: chat, action: "typing" });
    await until(client, `typing:${chat}`, () => client.model.get(`typing:${chat}`).actors.length);
    proxy.cut();
    await until(client, `typing:${chat}`, () => !client.model.get(`typing:${chat}`).actors.length);
    client.close();
  });
});

describe("a new name", () => {
  test("is everywhere at once", async () => {
    const { chat, client } = await openedByAnn();
    await bob.call("updateMe", { display_name: "Robert" });
    await until(
      client,
      `messages:${chat}`,
      () => first(client, chat).sender.display_name === "Robert",
    );
    const shown = client.model.get(`chat:${chat}`);
    expect(shown?.participants.map(({ display_name }) => display_name)).toContain("Robert");
    expect(shown?.last_message?.sender.display_name).toBe("Robert");
    await client.updateMe({ display_name: "Anna" });
    await until(client, "me", () => client.model.get("me")?.display_name === "Anna");
    client.close();
  });
});

describe("agents", () => {
  test("are known from the start, and after every change", async () => {
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

test("those who watch a piece are told when it has changed, and only then", async () => {
  const { chat, client } = await openedByAnn();
  const other = await groupOf(ann, bob);
  await until(client, "chats", () => client.model.get("chats").includes(other.id));
  let told = 0;
  const stop = client.model.watch(`chat:${chat}`, () => told++);
  const untouched = client.model.get(`messages:${chat}`);
  await say(bob, other, "elsewhere");
  await until(client, `chat:${other.id}`, () => client.model.get(`chat:${other.id}`)?.seq === 1);
  expect(told).toBe(0);
  expect(client.model.get(`messages:${chat}`)).toBe(untouched);
  await say(bob, { id: chat }, "here");
  await until(client, `messages:${chat}`, () => contents(client, chat).length === 2);
  expect(told).toBe(1);
  expect(client.model.get(`messages:${chat}`).items[0]).toBe(untouched.items[0]);
  stop();
  await say(bob, { id: chat }, "again");
  await until(client, `messages:${chat}`, () => contents(client, chat).length === 3);
  expect(told).toBe(1);
  client.close();
});
