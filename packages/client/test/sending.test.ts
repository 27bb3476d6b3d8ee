import { beforeAll, describe, expect, test } from "bun:test";
import { type Person, people } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { limits, startServer, type TestServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { type Client, isCallError } from "../src/index.ts";
import {
  clientOf,
  connected,
  contents,
  delivered,
  memoryStorage,
  online,
  until,
} from "./support/clients.ts";

let server: TestServer;
let ann: Person;
let bob: Person;
beforeAll(async () => {
  server = await sharedServer();
  [ann, bob] = await people(server.url, "ann", "bob");
});
const newChat = async (): Promise<string> =>
  (await ann.call("startChat", { usernames: [bob.username], kind: "group" })).id;

/** The contents of all messages that the server has. */
async function stored(chat_id: string): Promise<string[]> {
  const found: string[] = [];
  let before: string | undefined;
  for (;;) {
    const page = await ann.call("getChatHistory", {
      chat_id,
      limit: 100,
      ...(before && { before }),
    });
    found.unshift(...page.items.map(({ content }) => content));
    before = page.items[0]?.id;
    if (!page.has_more) return found;
  }
}

/** How many unsent messages a storage holds. */
const unsent = ({ getItem }: ReturnType<typeof memoryStorage>): number =>
  JSON.parse(getItem(`parley:outbox:${ann.username}`) ?? "[]").length;

const offline = (client: Client) =>
  until(client, "status", () => client.status === "offline", "the loss of the connection");

describe("a message", () => {
  test("is shown at once, and has its id and seq when the service has accepted it", async () => {
    const chat = await newChat();
    using client = await connected(ann, server.url);
    await client.model.openChat(chat);
    const id = client.model.send(chat, "hello");
    const [shown] = client.model.get(`messages:${chat}`).items;
    expect(shown).toMatchObject({ id, content: "hello", seq: 0, delivery: "sending" });
    expect(shown?.sender.username).toBe(ann.username);
    await delivered(client, chat);
    const [sent] = client.model.get(`messages:${chat}`).items;
    expect(sent).toMatchObject({ client_msg_id: id, seq: 1, delivery: "sent" });
    expect(sent?.id).not.toBe(id);
  });

  for (const direction of ["toServer", "toClient"] as const) {
    test(`is sent exactly once and in order wherever the connection is cut (${direction})`, async () => {
      const chat = await newChat();
      await using proxy = await FaultyProxy.to(server.url);
      using client = await connected(ann, proxy.url);
      await client.model.openChat(chat);
      const expected: string[] = [];
      // Up to the bytes of a handshake, the calls after it and the messages.
      for (let bytes = 0; bytes < 2400; bytes += 7) {
        proxy.cutAfter(bytes, direction);
        for (const part of ["a", "b", "c"]) {
          expected.push(`${bytes} ${part}`);
          client.model.send(chat, `${bytes} ${part}`);
        }
        await delivered(client, chat);
      }
      expect(proxy.accepted).toBeGreaterThan(20);
      expect(await stored(chat)).toEqual(expected);
      await online(client);
      expect(contents(client, chat)).toEqual(expected);
    });
  }

  test("written offline is sent after the reconnect, in order per conversation", async () => {
    const [one, other] = [await newChat(), await newChat()];
    await using proxy = await FaultyProxy.to(server.url);
    using client = await connected(ann, proxy.url);
    proxy.refuse(true);
    proxy.cut();
    await offline(client);
    for (const count of [1, 2, 3]) {
      client.model.send(one, `one ${count}`);
      client.model.send(other, `other ${count}`);
    }
    expect(contents(client, one)).toEqual(["one 1", "one 2", "one 3"]);
    expect(await stored(one)).toEqual([]);
    proxy.reset();
    await Promise.all([delivered(client, one), delivered(client, other)]);
    expect(await stored(one)).toEqual(["one 1", "one 2", "one 3"]);
    expect(await stored(other)).toEqual(["other 1", "other 2", "other 3"]);
  });

  test("is sent over HTTP if the client does not connect", async () => {
    const chat = await newChat();
    using client = clientOf(ann, server.url);
    client.model.send(chat, "by HTTP");
    await until(client, `messages:${chat}`, () => contents(client, chat).length === 0);
    expect(await stored(chat)).toEqual(["by HTTP"]);
  });

  test("waits out a rate limit", async () => {
    await using slow = await startServer(limits({ messages_per_second: 20, message_burst: 3 }));
    const [cat, dan] = await people(slow.url, "cat", "dan");
    const { id } = await cat.call("startChat", { usernames: [dan.username] });
    using client = await connected(cat, slow.url);
    await client.model.openChat(id);
    const expected = Array.from({ length: 8 }, (_, count) => `message ${count}`);
    for (const content of expected) client.model.send(id, content);
    await delivered(client, id);
    expect(contents(client, id)).toEqual(expected);
  });

  test("that the service refuses is marked failed, does not block others, and can be retried or discarded", async () => {
    const chat = await newChat();
    const storage = memoryStorage();
    using client = await connected(ann, server.url, { storage });
    await client.model.openChat(chat);
    const refused = client.model.send(chat, "x".repeat(40_000));
    client.model.send(chat, "fine");
    const failed = () =>
      client.model.get(`messages:${chat}`).items.find(({ delivery }) => delivery === "failed");
    const message = await until(client, `messages:${chat}`, failed);
    expect(message).toMatchObject({ id: refused, failure: expect.stringContaining("32768") });
    await until(client, `messages:${chat}`, () => contents(client, chat)[0] === "fine");
    client.model.retry(refused);
    expect(failed()).toBeUndefined();
    await until(client, `messages:${chat}`, failed);
    expect(unsent(storage)).toBe(1);
    client.model.discard(refused);
    expect(contents(client, chat)).toEqual(["fine"]);
    expect(unsent(storage)).toBe(0);
  });
});

describe("a reload", () => {
  test("sends unsent messages, and keeps refused ones as failed", async () => {
    const chat = await newChat();
    const storage = memoryStorage();
    await using proxy = await FaultyProxy.to(server.url);
    const first = await connected(ann, proxy.url, { storage });
    const refused = first.model.send(chat, " ");
    await until(
      first,
      `messages:${chat}`,
      () => first.model.get(`messages:${chat}`).items[0]?.delivery === "failed",
    );
    proxy.refuse(true);
    proxy.cut();
    await offline(first);
    first.model.send(chat, "one");
    first.model.send(chat, "two");
    first.close();
    proxy.reset();
    using second = await connected(ann, proxy.url, { storage });
    await second.model.openChat(chat);
    await until(second, `messages:${chat}`, () => contents(second, chat).length === 3);
    await until(second, `messages:${chat}`, () => contents(second, chat)[1] === "two");
    expect(second.model.get(`messages:${chat}`).items.at(-1)).toMatchObject({
      id: refused,
      delivery: "failed",
    });
    expect(await stored(chat)).toEqual(["one", "two"]);
  });

  test("does not send a message twice that had arrived without a reply", async () => {
    const chat = await newChat();
    const storage = memoryStorage();
    await using proxy = await FaultyProxy.to(server.url);
    using watcher = await connected(bob, server.url);
    await watcher.model.openChat(chat);
    const first = await connected(ann, proxy.url, { storage });
    proxy.stall("toClient");
    first.model.send(chat, "once");
    await until(watcher, `messages:${chat}`, () => contents(watcher, chat).length === 1);
    first.close();
    expect(unsent(storage)).toBe(1);
    proxy.reset();
    using second = await connected(ann, proxy.url, { storage });
    await second.model.openChat(chat);
    await delivered(second, chat);
    expect(contents(second, chat)).toEqual(["once"]);
    expect(await stored(chat)).toEqual(["once"]);
    expect(unsent(storage)).toBe(0);
  });

  test("does not bring back a message that had arrived and was deleted", async () => {
    const chat = await newChat();
    const storage = memoryStorage();
    await using proxy = await FaultyProxy.to(server.url);
    const first = await connected(ann, proxy.url, { storage });
    proxy.stall("toClient");
    first.model.send(chat, "once");
    using watcher = await connected(bob, server.url);
    await watcher.model.openChat(chat);
    await until(watcher, `messages:${chat}`, () => contents(watcher, chat).length === 1);
    first.close();
    const [message] = watcher.model.get(`messages:${chat}`).items;
    await ann.call("deleteMessages", { chat_id: chat, message_ids: [message?.id ?? ""] });
    using second = await connected(ann, server.url, { storage });
    await second.model.openChat(chat);
    await until(second, `messages:${chat}`, () => contents(second, chat).length === 0);
    expect(unsent(storage)).toBe(0);
  });

  test("restores drafts of the same person only", async () => {
    const chat = await newChat();
    const storage = memoryStorage();
    const first = await connected(ann, server.url, { storage });
    first.model.setDraft(chat, "half a sen");
    first.close();
    using second = await connected(ann, server.url, { storage });
    expect(second.model.get(`draft:${chat}`)).toBe("half a sen");
    using other = await connected(bob, server.url, { storage });
    expect(other.model.get(`draft:${chat}`)).toBe("");
    second.model.setDraft(chat, "");
    using third = await connected(ann, server.url, { storage });
    expect(third.model.get(`draft:${chat}`)).toBe("");
  });
});

describe("two tabs of one person", () => {
  test("send the messages of a shared storage exactly once", async () => {
    const chat = await newChat();
    const storage = memoryStorage();
    await using proxy = await FaultyProxy.to(server.url);
    using one = await connected(ann, proxy.url, { storage });
    await one.model.openChat(chat);
    proxy.refuse(true);
    proxy.cut();
    await offline(one);
    one.model.send(chat, "from the first");
    using two = await connected(ann, server.url, { storage });
    await two.model.openChat(chat);
    two.model.send(chat, "from the second");
    await delivered(two, chat);
    proxy.reset();
    await delivered(one, chat);
    await online(one);
    expect(await stored(chat)).toEqual(["from the first", "from the second"]);
    for (const tab of [one, two]) expect(contents(tab, chat)).toEqual(await stored(chat));
    expect(unsent(storage)).toBe(0);
  });

  test("have the same read position", async () => {
    const chat = await newChat();
    await bob.call("sendMessage", { chat_id: chat, content: `hello @${ann.username}` });
    using one = await connected(ann, server.url);
    using two = await connected(ann, server.url);
    const unread = () => two.model.get(`chat:${chat}`)?.unread;
    expect(unread()).toEqual({ human: 1, agent: 0, mentions: 1 });
    one.model.markRead(chat);
    await until(two, `chat:${chat}`, () => unread()?.human === 0);
    expect(unread()).toEqual({ human: 0, agent: 0, mentions: 0 });
  });
});

test("a call that is too large fails alone, and the client reconnects", async () => {
  const chat = await newChat();
  using client = await connected(ann, server.url);
  const sent = client.sendMessage({ chat_id: chat, content: "x".repeat(300_000) });
  const error = await sent.catch((thrown: unknown) => thrown);
  expect(isCallError(error) && error.code).toBe("payload_too_large");
  await online(client);
  expect((await client.getMe()).username).toBe(ann.username);
});
