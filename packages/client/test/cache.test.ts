import { beforeAll, describe, expect, test } from "bun:test";
import { groupOf, type Person, people, say } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import type { TestServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { clientOf, connected, contents, memoryStorage, online, until } from "./support/clients.ts";
import { equalsServer, loadAll } from "./support/view.ts";

const STATE = "parley:state";

let server: TestServer;
let ann: Person;
let bob: Person;
beforeAll(async () => {
  server = await sharedServer();
});
/** A storage left by Ann's client after it has shown a conversation with messages of Bob. */
async function seen(messages: number) {
  [ann, bob] = await people(server.url, "ann", "bob");
  const group = await groupOf(ann, bob);
  const sent = [];
  for (let count = 0; count < messages; count++) sent.push(await say(bob, group, `${count}`));
  const storage = memoryStorage();
  const client = await connected(ann, server.url, { storage });
  await client.model.openChat(group.id);
  client.model.setDraft(group.id, "half a thought");
  client.close();
  return { storage, chat: group.id, group, ids: sent.map(({ id }) => id) };
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `${from + index}`);

describe("the cached state", () => {
  test("is shown before there is a connection, and a message written then is sent after connecting", async () => {
    const { storage, chat } = await seen(3);
    await using proxy = await FaultyProxy.to(server.url);
    proxy.refuse(true);
    using client = clientOf(ann, proxy.url, { storage });
    expect(client.model.get("me")).toEqual(ann.account);
    expect(client.model.get("chats")).toEqual([chat]);
    expect(contents(client, chat)).toEqual(["0", "1", "2"]);
    expect(client.model.get(`draft:${chat}`)).toBe("half a thought");
    client.connect().catch(() => {});
    await until(client, "status", () => client.status === "offline");
    client.model.send(chat, "written early");
    expect(contents(client, chat)).toEqual(["0", "1", "2", "written early"]);
    proxy.refuse(false);
    await online(client);
    await until(client, `messages:${chat}`, () =>
      client.model.get(`messages:${chat}`).items.every(({ delivery }) => delivery === "sent"),
    );
    await equalsServer(client, ann);
  });

  test("is updated to the server's state after connecting", async () => {
    const { storage, chat, group, ids } = await seen(5);
    const [edited = "", deleted = "", hidden = ""] = ids;
    await bob.call("editMessage", { message_id: edited, content: "edited" });
    await bob.call("deleteMessages", { chat_id: chat, message_ids: [deleted] });
    await ann.call("deleteMessagesForMe", { chat_id: chat, message_ids: [hidden] });
    await bob.call("setChatTitle", { chat_id: chat, title: "Another name" });
    await say(bob, group, "new");
    await groupOf(ann, bob);
    using client = await connected(ann, server.url, { storage });
    expect(contents(client, chat)).toEqual(["edited", "3", "4", "new"]);
    await loadAll(client);
    await equalsServer(client, ann);
  });

  test("drops a conversation that the caller has left meanwhile", async () => {
    const { storage, chat } = await seen(1);
    await bob.call("leaveChat", { chat_id: chat });
    await ann.call("leaveChat", { chat_id: chat });
    using client = await connected(ann, server.url, { storage });
    expect(client.model.get("chats")).toEqual([]);
    expect(client.model.get(`messages:${chat}`).loaded).toBe(false);
  });

  test("contains the latest messages, and older ones can be loaded", async () => {
    const { storage, chat } = await seen(60);
    using client = clientOf(ann, server.url, { storage });
    expect(contents(client, chat)).toEqual(numbers(20, 60));
    expect(client.model.get(`messages:${chat}`).hasOlder).toBe(true);
    await client.connect();
    await client.model.loadOlder(chat);
    expect(contents(client, chat)).toEqual(numbers(0, 60));
  });

  test("is loaded again if too many changes are missing", async () => {
    const { storage, chat, group } = await seen(10);
    for (let count = 10; count < 1100; count++) await say(bob, group, `${count}`);
    using client = await connected(ann, server.url, { storage });
    expect(client.model.get(`messages:${chat}`).loaded).toBe(false);
    await client.model.openChat(chat);
    expect(contents(client, chat)).toEqual(numbers(1050, 1100));
  });

  test("is not shown to another account, and does not contain the token", async () => {
    const { storage } = await seen(1);
    using other = clientOf(bob, server.url, { storage });
    expect(other.model.get("me")).toBeNull();
    expect(other.model.get("chats")).toEqual([]);
    expect([...storage.items.values()].join()).not.toContain(ann.token);
  });

  test("is deleted when the session ends", async () => {
    for (const end of ["leave", "revoked"] as const) {
      const { storage } = await seen(1);
      const client = await connected(ann, server.url, { storage });
      expect(storage.items.has(STATE)).toBe(true);
      if (end === "leave") await client.leave();
      else await ann.call("signOut");
      await until(client, "status", () => client.status === "signed_out");
      client.close();
      expect([end, storage.items.has(STATE)]).toEqual([end, false]);
    }
  });

  test("of a version without files has messages without files", async () => {
    const { storage, chat } = await seen(2);
    const cached = storage.getItem(STATE) ?? "";
    const earlier = cached.replaceAll(',"files":[]', "");
    expect(earlier).not.toBe(cached);
    storage.setItem(STATE, earlier);
    using client = clientOf(ann, server.url, { storage });
    const shown = client.model.get(`messages:${chat}`).items;
    expect(shown.map(({ files }) => files)).toEqual([[], []]);
    expect(client.model.get(`chat:${chat}`)?.last_message?.files).toEqual([]);
    await client.connect();
    await equalsServer(client, ann);
  });

  test("is ignored if it cannot be parsed", async () => {
    const { storage } = await seen(1);
    for (const rubbish of ["{", '{"version":1}', "7", '{"version":0,"chats":{}}']) {
      storage.setItem(STATE, rubbish);
      using client = await connected(ann, server.url, { storage });
      expect(client.model.get("chats")).toHaveLength(1);
    }
  });
});
