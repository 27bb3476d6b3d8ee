import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { groupOf, type Person, people, say } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { limits, startServer, type TestServer } from "@parley/testkit/server.ts";
import type { LocalMessage } from "../src/index.ts";
import {
  codeOf,
  connected,
  contents,
  delivered,
  openedGroup,
  type TestClient,
  until,
} from "./support/clients.ts";
import { collectReportedErrors } from "./support/reported-errors.ts";

let server: TestServer;
let ann: Person;
let bob: Person;
beforeAll(async () => {
  server = await startServer(
    limits({ messages_per_second: 0, operations_per_second: 0, sockets_per_user: 100 }),
  );
  [ann, bob] = await people(server.url, "ann", "bob");
});
afterAll(() => server[Symbol.asyncDispose]());

const first = (client: TestClient, chat: string): LocalMessage => {
  const [message] = client.model.get(`messages:${chat}`).items;
  if (!message) throw new Error("there is no message");
  return message;
};

const openedByAnn = (url = server.url) => openedGroup(ann, bob, url);

describe("messages", () => {
  test("load page by page without gaps while new ones arrive", async () => {
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

  test("show edits and deletions by others", async () => {
    using opened = await openedByAnn();
    const { chat, client, message } = opened;
    await bob.call("editMessage", { message_id: message.id, content: "hello there" });
    await until(client, `messages:${chat}`, () => first(client, chat).edited_at !== null);
    expect(contents(client, chat)).toEqual(["hello there"]);
    await bob.call("deleteMessages", { chat_id: chat, message_ids: [message.id] });
    await until(client, `messages:${chat}`, () => contents(client, chat).length === 0);
    expect(client.model.get(`chat:${chat}`)).toMatchObject({
      last_message: null,
      unread_count: 0,
    });
  });

  test("are changed optimistically, and rolled back if the service refuses", async () => {
    using opened = await openedByAnn();
    const { chat, client, message } = opened;
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
  });

  test("of others can be hidden but not deleted", async () => {
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

  test("show reactions, and which are the caller's own", async () => {
    using opened = await openedByAnn();
    const { chat, client, message } = opened;
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
  });

  test("changed offline are changed on the server after the reconnect", async () => {
    await using proxy = await FaultyProxy.to(server.url);
    using opened = await openedByAnn(proxy.url);
    const { chat, client, message } = opened;
    client.model.send(chat, "mine");
    await delivered(client, chat);
    const mine = client.model.get(`messages:${chat}`).items.at(-1)?.id ?? "";
    proxy.refuse(true);
    proxy.cut();
    await until(client, "status", () => client.status === "offline");
    const changes = [client.model.edit(mine, "edited"), client.model.react(message.id, "🎉")];
    client.model.markRead(chat);
    expect(contents(client, chat)).toEqual(["hello", "edited"]);
    proxy.reset();
    await Promise.all(changes);
    const { items } = await ann.call("getChatHistory", { chat_id: chat });
    expect(items.map(({ content }) => content)).toEqual(["hello", "edited"]);
    expect(items[0]?.reactions).toEqual([{ emoji: "🎉", count: 1, reacted: true }]);
  });
});

describe("typing", () => {
  test("is shown to others until the message arrives", async () => {
    using opened = await openedByAnn();
    const { chat, client } = opened;
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
    // The next keystroke is reported again.
    writer.model.typing(chat);
    await until(client, `typing:${chat}`, () => actors().length === 1);
  });

  test("ends when the connection is lost", async () => {
    await using proxy = await FaultyProxy.to(server.url);
    using opened = await openedByAnn(proxy.url);
    const { chat, client } = opened;
    await bob.call("sendChatAction", { chat_id: chat, action: "typing" });
    await until(client, `typing:${chat}`, () => client.model.get(`typing:${chat}`).actors.length);
    proxy.cut();
    await until(client, `typing:${chat}`, () => !client.model.get(`typing:${chat}`).actors.length);
  });
});

describe("a new name", () => {
  test("is shown everywhere", async () => {
    using opened = await openedByAnn();
    const { chat, client } = opened;
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
  });
});

test("listeners are called when their piece has changed, and only then", async () => {
  using opened = await openedByAnn();
  const { chat, client } = opened;
  const other = await groupOf(ann, bob);
  await until(client, "chats", () => client.model.get("chats").includes(other.id));
  let calls = 0;
  const stop = client.model.watch(`chat:${chat}`, () => calls++);
  const untouched = client.model.get(`messages:${chat}`);
  await say(bob, other, "elsewhere");
  await until(client, `chat:${other.id}`, () => client.model.get(`chat:${other.id}`)?.seq === 1);
  expect(calls).toBe(0);
  expect(client.model.get(`messages:${chat}`)).toBe(untouched);
  await say(bob, { id: chat }, "here");
  await until(client, `messages:${chat}`, () => contents(client, chat).length === 2);
  expect(calls).toBe(1);
  expect(client.model.get(`messages:${chat}`).items[0]).toBe(untouched.items[0]);
  stop();
  await say(bob, { id: chat }, "again");
  await until(client, `messages:${chat}`, () => contents(client, chat).length === 3);
  expect(calls).toBe(1);
});

test("a listener that throws is reported, and affects nothing else", async () => {
  using opened = await openedByAnn();
  const { chat, client } = opened;
  using reported = collectReportedErrors();
  const watchError = new Error("of watch");
  const onError = new Error("of on");
  client.model.watch(`messages:${chat}`, () => {
    throw watchError;
  });
  client.on("events.messageNew", () => {
    throw onError;
  });
  const read = Promise.withResolvers<void>();
  client.eachMessage(({ content }) => void (content === "three" && read.resolve()));
  await client.getMe();
  for (const content of ["one", "two"]) client.model.send(chat, content);
  await delivered(client, chat);
  expect(contents(client, chat)).toEqual(["hello", "one", "two"]);
  await say(bob, { id: chat }, "three");
  await read.promise;
  expect(reported.errors).toContain(watchError);
  expect(reported.errors).toContain(onError);
});
