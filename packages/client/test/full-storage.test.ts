import { beforeAll, expect, test } from "bun:test";
import { groupOf, type Person, people, say } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import type { TestServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { delivered, online, until } from "./support/clients.ts";
import { Tabs } from "./support/tabs.ts";

let server: TestServer;
let ann: Person;
let bob: Person;
beforeAll(async () => {
  server = await sharedServer();
  [ann, bob] = await people(server.url, "ann", "bob");
});
/** A tab without a connection, whose storage contains the cached state and is full. */
async function offlineTab(proxy: FaultyProxy) {
  const { id: chat } = await groupOf(ann, bob);
  await say(bob, { id: chat }, "x".repeat(3000));
  const tabs = new Tabs();
  {
    using first = await tabs.open(ann, proxy.url);
    await first.model.openChat(chat);
  }
  expect([...tabs.items.keys()]).toEqual(["parley:state"]);
  const errors: Error[] = [];
  const client = await tabs.open(ann, proxy.url, { onError: (error) => errors.push(error) });
  proxy.refuse(true);
  proxy.cut();
  await until(client, "status", () => client.status === "offline");
  tabs.room = tabs.used;
  return { chat, tabs, client, errors };
}

test("an unsent message is stored in place of the cached state if the storage is full", async () => {
  await using proxy = await FaultyProxy.to(server.url);
  const { chat, tabs, client, errors } = await offlineTab(proxy);
  using _ = client;
  client.model.send(chat, "important");
  expect(tabs.items.get(`parley:outbox:${ann.username}`)).toContain("important");
  expect(errors).toEqual([]);
});

test("the application learns once that nothing more can be stored, and again after it could", async () => {
  await using proxy = await FaultyProxy.to(server.url);
  const { chat, tabs, client, errors } = await offlineTab(proxy);
  using _ = client;
  const large = "x".repeat(tabs.room);
  client.model.send(chat, large);
  client.model.setDraft(chat, large);
  expect(errors.map(({ message }) => message)).toEqual([
    "what you have not sent cannot be stored, and is lost when you close this page",
  ]);
  proxy.reset();
  await online(client);
  await delivered(client, chat);
  client.model.setDraft(chat, "short");
  client.model.setDraft(chat, large);
  expect(errors).toHaveLength(2);
});
