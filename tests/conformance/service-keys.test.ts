import { afterAll, describe, expect, test } from "bun:test";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { failure, groupOf, post, RawSocket, signUp } from "@parley/testkit/client.ts";
import { operatorAt } from "@parley/testkit/operators.ts";
import { limits, noRates, startServer } from "@parley/testkit/server.ts";

const server = await startServer({
  ...noRates,
  ...serviceKeySetting(),
  PARLEY_OPERATORS: "olga",
});
afterAll(() => server[Symbol.asyncDispose]());
const backend = new Backend(server.url);
const alice = await signUp(server.url, "alice");
const olga = await operatorAt(server, "olga");

describe("a service key", () => {
  test("calls operations for operators", async () => {
    expect(await backend.call("getAuditLog", { limit: 1 })).toMatchObject({ items: [{}] });
  });

  test("needs a person for the operations of people", async () => {
    expect(await failure(backend.call("getMe"))).toMatchObject({
      status: 403,
      message:
        "forbidden: a service key calls this operation for a person, named in the header x-parley-as",
    });
  });

  test("is 401 when it is unknown", async () => {
    const unknown = new Backend(server.url, { key: `${backend.key}x` });
    expect(await failure(unknown.call("getAuditLog"))).toMatchObject({ status: 401 });
    expect(await failure(unknown.as(alice.username).call("getMe"))).toMatchObject({ status: 401 });
  });

  test("is 403 in a browser, known or not", async () => {
    for (const key of [backend.key, `${backend.key}x`]) {
      for (const origin of [server.url, "https://shop.example.com", "null"]) {
        const caller = new Backend(server.url, { key, actsFor: alice.username });
        const { status, body } = await caller.post("getMe", {}, { origin });
        expect(status).toBe(403);
        expect(body).toMatchObject({
          description: "forbidden: a service key must not be used in a browser",
        });
      }
    }
  });

  test("opens no socket", async () => {
    await using socket = await RawSocket.open(server.url, `/api/ws?token=${backend.key}`);
    expect(socket.answer?.status).toBe(403);
    expect(socket.answer?.body).toContain("service keys are for HTTP calls only");
  });
});

describe("a service key that acts for a person", () => {
  const asAlice = backend.as(alice.username);

  test("has that person's rights", async () => {
    expect(await asAlice.call("getMe")).toMatchObject(alice.account);
    expect(await backend.as(alice.username.toUpperCase()).call("getMe")).toMatchObject(
      alice.account,
    );
    const bob = await signUp(server.url, "bob");
    const chat = await groupOf(alice, bob);
    const { sender } = await asAlice.call("sendMessage", { chat_id: chat.id, content: "hello" });
    expect(sender).toEqual(alice.account);
    const { items } = await bob.call("getChatHistory", { chat_id: chat.id });
    expect(items.map(({ content }) => content)).toEqual(["hello"]);
  });

  test("has no other rights", async () => {
    const [bob, carol] = [await signUp(server.url, "bob"), await signUp(server.url, "carol")];
    const { id } = await groupOf(bob, carol);
    expect(await failure(asAlice.call("getChat", { chat_id: id }))).toMatchObject({ status: 403 });
    expect(await failure(asAlice.call("getAuditLog"))).toMatchObject({ status: 403 });
    const entries = await backend.as(olga.username).call("getAuditLog", { limit: 1 });
    expect(entries.items).toHaveLength(1);
  });

  test("is written to the audit log, call by call", async () => {
    const dora = await signUp(server.url, "dora");
    const asDora = backend.as(dora.username);
    await asDora.call("getMe");
    await asDora.call("updateMe", { display_name: "Dora" });
    const { items } = await olga.call("getAuditLog", {
      account: dora.username,
      action: "acted_on_behalf",
    });
    expect(items.map(({ service_key, details }) => [service_key, details])).toEqual([
      ["(PARLEY_SERVICE_KEY_FILE)", { operation: "updateMe" }],
      ["(PARLEY_SERVICE_KEY_FILE)", { operation: "getMe" }],
    ]);
  });

  test("is 400 when nobody has that name, or an agent has it", async () => {
    const malformed = ["", "id:", "ä ö", "id:\u0085", `id:${"x".repeat(129)}`];
    for (const name of ["nobody_here", "id:unknown", `${alice.username}:claude`, ...malformed]) {
      const { status, body } = await backend.as(name).post("getMe");
      expect(status).toBe(400);
      expect(body).toMatchObject({ parameters: { fields: { "x-parley-as": "names nobody" } } });
    }
  });

  test("has no session: it lists the person's, and has none to sign out", async () => {
    const { items } = await asAlice.call("getSessions");
    expect(items.map(({ current }) => current)).toEqual([false]);
    expect(await failure(asAlice.call("signOut"))).toMatchObject({ status: 400 });
    expect(await alice.call("getMe")).toMatchObject(alice.account);
  });
});

test("x-parley-as must be UTF-8", async () => {
  // The runtime sends each character as a byte.
  const { status, body } = await backend.post("getMe", {}, { "x-parley-as": "id:a\xff" });
  expect(status).toBe(400);
  expect(body).toMatchObject({ parameters: { fields: { "x-parley-as": "must be UTF-8" } } });
});

test("x-parley-as needs a service key", async () => {
  const headers = { "x-parley-as": "olga" };
  const { status, body } = await post(server.url, "getMe", {}, alice.token, headers);
  expect(status).toBe(400);
  expect(body).toMatchObject({ parameters: { fields: { "x-parley-as": "needs a service key" } } });
});

test("service keys have a rate of their own, which calls for people count against", async () => {
  await using slow = await startServer({
    ...limits({
      service_operations_per_second: 1,
      service_operation_burst: 3,
      operations_per_second: 0,
    }),
    ...serviceKeySetting(),
  });
  const eve = await signUp(slow.url, "eve");
  const key = new Backend(slow.url);
  const calls = Array.from({ length: 12 }, (_, n) =>
    n % 2 === 0 ? key.post("getAuditLog") : key.as(eve.username).post("getMe"),
  );
  const statuses = (await Promise.all(calls)).map(({ status }) => status);
  expect(statuses).toContain(200);
  expect(statuses).toContain(429);
  expect(await eve.call("getMe")).toMatchObject(eve.account);
});
