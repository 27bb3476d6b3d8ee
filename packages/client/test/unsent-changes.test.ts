import { beforeAll, expect, test } from "bun:test";
import { groupOf, type Person, people, say } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import type { TestServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { clientOf, connected, contents, memoryStorage, until } from "./support/clients.ts";

let server: TestServer;
let ann: Person;
let bob: Person;
beforeAll(async () => {
  server = await sharedServer();
  [ann, bob] = await people(server.url, "ann", "bob");
});
/** Changes that a client makes offline to messages of Ann, before it is closed. */
async function changedOffline(proxy: FaultyProxy) {
  const { id: chat } = await groupOf(ann, bob);
  const first = await say(ann, { id: chat }, "one");
  const second = await say(ann, { id: chat }, "two");
  const storage = memoryStorage();
  using client = await connected(ann, proxy.url, { storage });
  await client.model.openChat(chat);
  proxy.refuse(true);
  proxy.cut();
  await until(client, "status", () => client.status === "offline");
  const ended = Promise.allSettled([
    client.model.edit(first.id, "one, corrected"),
    client.model.react(first.id, "👍"),
    client.model.remove(chat, [second.id], "everyone"),
  ]);
  client.close();
  expect((await ended).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  return { chat, first, storage, key: `parley:changes:${ann.username}` };
}

test("changes made offline are shown after a reload, and sent when there is a connection", async () => {
  await using proxy = await FaultyProxy.to(server.url);
  const { chat, storage, key } = await changedOffline(proxy);
  using again = clientOf(ann, proxy.url, { storage });
  expect(contents(again, chat)).toEqual(["one, corrected"]);
  expect(again.model.get(`messages:${chat}`).items[0]?.reactions).toMatchObject([{ emoji: "👍" }]);
  proxy.reset();
  await again.connect();
  await again.model.openChat(chat);
  using other = await connected(bob, server.url);
  await other.model.openChat(chat);
  await until(other, `messages:${chat}`, () => {
    const { items } = other.model.get(`messages:${chat}`);
    return items.length === 1 && items[0]?.reactions.length === 1;
  });
  await until(other, `messages:${chat}`, () => contents(other, chat)[0] === "one, corrected");
  await until(again, `messages:${chat}`, () => !storage.items.get(key));
  expect(contents(again, chat)).toEqual(["one, corrected"]);
});

test("a change made before a reload is rolled back and reported if the service refuses it", async () => {
  await using proxy = await FaultyProxy.to(server.url);
  const { chat, first, storage, key } = await changedOffline(proxy);
  await ann.call("deleteMessages", { chat_id: chat, message_ids: [first.id] });
  proxy.reset();
  const { promise: refused, resolve } = Promise.withResolvers<Error>();
  using again = await connected(ann, proxy.url, { storage, onError: resolve });
  expect(await refused).toMatchObject({ code: "not_found" });
  await until(again, `messages:${chat}`, () => contents(again, chat).length === 0);
  await until(again, `messages:${chat}`, () => !storage.items.get(key));
});

test("signing out deletes changes that were not sent", async () => {
  await using proxy = await FaultyProxy.to(server.url);
  const { storage, key } = await changedOffline(proxy);
  expect(storage.items.has(key)).toBe(true);
  using again = clientOf(ann, proxy.url, { storage });
  await again.leave();
  expect(storage.items.has(key)).toBe(false);
});
