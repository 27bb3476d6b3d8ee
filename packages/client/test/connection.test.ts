import { beforeAll, describe, expect, test } from "bun:test";
import { type Person, people, post } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { noRates, startServer, type TestServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { createClient, isCallError } from "../src/index.ts";
import {
  clientOf,
  codeOf,
  connected,
  contents,
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
const status = (client: { status: string } & Parameters<typeof until>[0], wanted: string) =>
  until(client, "status", () => client.status === wanted, `the status ${wanted}`);

describe("signing in", () => {
  test("with enter() connects, and the token works for later clients", async () => {
    const first = createClient({ url: server.url });
    expect(first.status).toBe("signed_out");
    const username = `new_${Date.now().toString(36)}`;
    const { account } = await first.enter("signUp", { username, password: "correct horse" });
    expect(first.status).toBe("online");
    expect(first.model.get("me")).toEqual(account);
    expect(first.model.get("agents").map(({ provider }) => provider)).toEqual(["claude", "gpt"]);
    first.close();
    using second = await connected({ token: first.token ?? "" }, server.url);
    expect(second.model.get("me")).toEqual(account);
  });

  test("fails with a wrong password", async () => {
    const client = createClient({ url: server.url });
    const input = { username: ann.username, password: "wrong horse battery" };
    expect(await codeOf(client.enter("signIn", input))).toBe("unauthorized");
    expect(client.status).toBe("signed_out");
    expect(await codeOf(client.connect())).toBe("unauthorized");
  });

  test("with an invalid token ends in signed_out", async () => {
    using client = clientOf({ token: "ply_nonsense" }, server.url);
    expect(await codeOf(client.connect())).toBe("unauthorized");
    expect(client.status).toBe("signed_out");
    expect(client.token).toBeNull();
  });

  test("with another account discards the state of the first", async () => {
    const [cat, dan] = await people(server.url, "cat", "dan");
    const { id } = await cat.call("startChat", { usernames: [ann.username] });
    using client = await connected(cat, server.url);
    expect(client.model.get("chats")).toEqual([id]);
    await client.enter("signIn", { username: dan.username, password: "correct horse battery" });
    expect(client.model.get("me")?.username).toBe(dan.username);
    expect(client.model.get("chats")).toEqual([]);
  });
});

describe("signing out", () => {
  test("with leave() revokes the token and clears model and storage", async () => {
    const [cat] = await people(server.url, "cat");
    const { id } = await cat.call("startChat", { usernames: [ann.username] });
    const storage = memoryStorage();
    using client = await connected(cat, server.url, { storage });
    client.model.setDraft(id, "soon");
    expect(storage.items.size).toBe(1);
    await client.leave();
    expect(client.status).toBe("signed_out");
    expect(client.token).toBeNull();
    expect(client.model.get("chats")).toEqual([]);
    expect(client.model.get("me")).toBeNull();
    expect(storage.items.size).toBe(0);
    expect((await post(server.url, "getMe", {}, cat.token)).status).toBe(401);
  });

  test("with leave() does not wait for a server that does not answer", async () => {
    const [cat] = await people(server.url, "cat");
    await using proxy = await FaultyProxy.to(server.url);
    using client = await connected(cat, proxy.url, { timeoutMs: 600_000 });
    proxy.stall("toServer", "toClient");
    await client.leave();
    expect(client.status).toBe("signed_out");
    expect(client.token).toBeNull();
  });

  test("in one tab signs out the other tabs of the session", async () => {
    const [cat] = await people(server.url, "cat");
    using one = await connected(cat, server.url);
    using two = await connected(cat, server.url);
    await one.signOut();
    await status(two, "signed_out");
    expect(two.token).toBeNull();
    expect(one.status).toBe("signed_out");
  });
});

describe("a lost connection", () => {
  test("is made again, and missed messages are fetched", async () => {
    const { id } = await ann.call("startChat", { usernames: [bob.username], kind: "group" });
    await using proxy = await FaultyProxy.to(server.url);
    using client = await connected(ann, proxy.url);
    await client.model.openChat(id);
    proxy.refuse(true);
    proxy.cut();
    await status(client, "offline");
    for (let count = 0; count < 250; count++) {
      await bob.call("sendMessage", { chat_id: id, content: `missed ${count}` });
    }
    const elsewhere = await bob.call("startChat", { usernames: [ann.username], title: "New" });
    proxy.reset();
    await online(client);
    expect(contents(client, id)).toHaveLength(250);
    expect(contents(client, id).at(-1)).toBe("missed 249");
    expect(client.model.get("chats").slice(0, 2).toSorted()).toEqual([id, elsewhere.id].toSorted());
    expect(client.model.get(`chat:${id}`)?.unread_count).toBe(250);
  });

  test("is made again at once by reconnect()", async () => {
    await using proxy = await FaultyProxy.to(server.url);
    const reconnectMs = { min: 600_000, max: 600_000 };
    using client = await connected(ann, proxy.url, { reconnectMs });
    proxy.refuse(true);
    proxy.cut();
    await status(client, "offline");
    proxy.reset();
    client.reconnect();
    await online(client);
    client.reconnect();
    expect((await client.getMe()).username).toBe(ann.username);
  });

  test("is detected by a call that gets no reply", async () => {
    await using proxy = await FaultyProxy.to(server.url);
    // Long enough for the last call on a slow machine.
    using client = await connected(ann, proxy.url, { timeoutMs: 3000 });
    proxy.stall("toServer", "toClient");
    expect(await codeOf(client.getMe())).toBe("unavailable");
    expect(client.status).toBe("offline");
    proxy.reset();
    await online(client);
    expect((await client.getMe()).username).toBe(ann.username);
  });

  test("lets calls use HTTP meanwhile", async () => {
    await using proxy = await FaultyProxy.to(server.url);
    // A socket that never opens, as behind some proxies.
    class Dead extends EventTarget {
      readonly readyState = 0;
      close() {}
    }
    const options = { WebSocket: Dead as unknown as typeof WebSocket };
    using client = clientOf(ann, proxy.url, options);
    void client.connect();
    expect(client.status).toBe("connecting");
    expect((await client.getMe()).username).toBe(ann.username);
    proxy.refuse(true);
    proxy.cut();
    expect(await codeOf(client.getMe())).toBe("unavailable");
  });

  test("is detected by offline events, and made again when the network or the tab is back", async () => {
    const page = new EventTarget();
    const tab = Object.assign(new EventTarget(), { visibilityState: "visible" });
    Object.assign(globalThis, { window: page, document: tab });
    try {
      await using proxy = await FaultyProxy.to(server.url);
      using client = await connected(ann, proxy.url, {
        // Longer than this test may take.
        reconnectMs: { min: 600_000, max: 600_000 },
      });
      for (const [disconnect, restore] of [
        [() => proxy.cut(), () => page.dispatchEvent(new Event("online"))],
        [() => proxy.cut(), () => tab.dispatchEvent(new Event("visibilitychange"))],
        [
          () => page.dispatchEvent(new Event("offline")),
          () => page.dispatchEvent(new Event("online")),
        ],
      ] as const) {
        disconnect();
        await status(client, "offline");
        restore();
        await online(client);
      }
    } finally {
      Object.assign(globalThis, { window: undefined, document: undefined });
    }
  });

  test("survives a restart of the service", async () => {
    await using own = await startServer(noRates);
    const [cat, dan] = await people(own.url, "cat", "dan");
    const { id } = await cat.call("startChat", { usernames: [dan.username] });
    await using proxy = await FaultyProxy.to(own.url);
    using client = await connected(cat, proxy.url);
    await client.model.openChat(id);
    // Meanwhile the port may belong to a server of another test.
    proxy.refuse(true);
    await own.stop();
    await status(client, "offline");
    client.model.send(id, "while it was down");
    await own.restart();
    proxy.retarget(own.url);
    proxy.refuse(false);
    await until(
      client,
      `messages:${id}`,
      () => client.model.get(`messages:${id}`).items[0]?.delivery === "sent",
    );
    await online(client);
  });
});

test("a closed client receives and sends nothing", async () => {
  const { id } = await ann.call("startChat", { usernames: [bob.username], kind: "group" });
  using client = await connected(ann, server.url);
  client.close();
  expect(client.status).toBe("offline");
  await bob.call("sendMessage", { chat_id: id, content: "unreceived" });
  client.model.send(id, "unsent");
  expect(await codeOf(client.model.openChat(id))).toBe("unavailable");
  expect(client.model.get(`chat:${id}`)?.seq).toBe(0);
  expect((await ann.call("getChat", { chat_id: id })).seq).toBe(1);
  await client.connect();
  await until(client, `chat:${id}`, () => client.model.get(`chat:${id}`)?.seq === 2);
});

test("errors have the service's code and name the wrong fields", async () => {
  for (const client of [clientOf(ann, server.url), await connected(ann, server.url)]) {
    const error = await client.getChat({ chat_id: "nonsense" }).catch((thrown: unknown) => thrown);
    if (!isCallError(error)) throw error;
    expect(error.code).toBe("bad_request");
    expect(error.fields).toEqual({ chat_id: "must be a UUID" });
    client.close();
  }
});

test("a call without a reply has a cause", async () => {
  await using proxy = await FaultyProxy.to(server.url);
  using client = await connected(ann, proxy.url, { reconnectMs: { min: 60_000, max: 60_000 } });
  const caught = (call: Promise<unknown>) => call.catch((error: unknown) => error);
  proxy.stall("toServer", "toClient");
  const lost = caught(client.getMe());
  proxy.refuse(true);
  proxy.cut();
  expect(await lost).toMatchObject({ code: "unavailable", cause: expect.any(Error) });
  expect(await caught(client.getMe())).toMatchObject({
    code: "unavailable",
    cause: expect.any(Error),
  });
  using gateway = Bun.serve({ port: 0, fetch: () => new Response("<html>", { status: 502 }) });
  using other = clientOf(ann, gateway.url.origin);
  const refused = (await caught(other.getMe())) as Error;
  expect(String(refused.cause)).toContain("502");
});

test("on() subscribes to one event, and its result unsubscribes", async () => {
  const { id } = await ann.call("startChat", { usernames: [bob.username], kind: "group" });
  using client = await connected(ann, server.url);
  const received: string[] = [];
  const arrived = Promise.withResolvers<void>();
  const stop = client.on("events.messageNew", ({ params }) => {
    received.push(params.content);
    arrived.resolve();
  });
  await bob.call("sendMessage", { chat_id: id, content: "one" });
  await arrived.promise;
  stop();
  await bob.call("sendMessage", { chat_id: id, content: "two" });
  await until(client, `chat:${id}`, () => client.model.get(`chat:${id}`)?.seq === 2);
  expect(received).toEqual(["one"]);
});
