import { afterAll, describe, expect, test } from "bun:test";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { failure, Person, post, signUp, TIMESTAMP } from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";

const server = await startServer({
  ...noRates,
  ...serviceKeySetting(),
  PARLEY_OPERATORS: "olga_ops",
});
afterAll(() => server[Symbol.asyncDispose]());
const backend = new Backend(server.url);

let count = 0;
const freshId = () => `customer ${process.pid}-${++count}`;

async function upsert(user: Parameters<typeof upsertAll>[0]) {
  const [item] = await upsertAll(user);
  if (!item) throw new Error("nothing was returned");
  return item;
}

const upsertAll = async (
  ...users: {
    external_id: string;
    username?: string;
    display_name?: string;
    metadata?: Record<string, string>;
  }[]
) => (await backend.call("upsertUsers", { users })).items;

/** A person who signs in with an issued token. */
async function signedIn(external_id: string, expires_in?: number) {
  const { access_token, account } = await backend.call("issueToken", { external_id, expires_in });
  return new Person(server.url, access_token, account);
}

describe("upsertUsers", () => {
  test("creates an account with its agents", async () => {
    const external_id = freshId();
    const item = await upsert({ external_id, display_name: `Ada ${count}` });
    const username = `ada_${count}`;
    expect(item).toEqual({
      external_id,
      account: { username, kind: "human", display_name: `Ada ${count}`, version: 0 },
      created: true,
    });
    const ada = backend.as(`id:${external_id}`);
    expect(await ada.call("getMe")).toMatchObject(item.account);
    const { items } = await ada.call("getMyAgents");
    expect(items.map((agent) => agent.username)).toEqual([`${username}:claude`, `${username}:gpt`]);
  });

  test("takes null for an optional field as if it were left out", async () => {
    const external_id = freshId();
    const first = await upsert({ external_id, display_name: "Ida", metadata: { plan: "free" } });
    const nulls = { external_id, username: null, display_name: null, metadata: null };
    const { status, body } = await backend.post("upsertUsers", { users: [nulls] });
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { result: { items: [{ ...first, created: false }] } },
    });
  });

  test("is idempotent, and changes only what is given", async () => {
    const external_id = freshId();
    const first = await upsert({ external_id, display_name: "Bo", metadata: { plan: "free" } });
    const again = await upsert({ external_id, display_name: "Bo", metadata: { plan: "free" } });
    expect(again).toEqual({ ...first, created: false });
    expect(await upsert({ external_id })).toEqual({ ...first, created: false });
    const bo = await signedIn(external_id);
    await using socket = await bo.connect();
    const renamed = await upsert({ external_id, display_name: "Bo Peep" });
    expect(renamed.account).toMatchObject({
      username: first.account.username,
      display_name: "Bo Peep",
    });
    const { params } = await socket.event("events.accountUpdated");
    expect(params).toEqual(renamed.account);
  });

  test("gives nobody a username that PARLEY_OPERATORS names", async () => {
    const derived = await upsert({ external_id: freshId(), display_name: "Olga Ops" });
    expect(derived.account.username).toMatch(/^olga_ops_[0-9a-f]{4}$/);
    const users = [{ external_id: freshId(), username: "olga_ops" }];
    const { status, body } = await backend.post("upsertUsers", { users });
    expect({ status, body }).toMatchObject({
      status: 409,
      body: { parameters: { fields: { "users.0.username": "is taken" } } },
    });
  });

  test("derives usernames from display names or ids, and keeps them apart", async () => {
    const suffix = `${process.pid}`;
    const items = await upsertAll(
      { external_id: freshId(), display_name: `Zoë Ångström ${suffix}` },
      { external_id: freshId(), display_name: `Zoë Ångström ${suffix}` },
      { external_id: `mia.${suffix}@example.com` },
      { external_id: `陈-${suffix}`, display_name: "陈" },
      { external_id: `support-${suffix}`, display_name: "王" },
      { external_id: freshId(), display_name: "李", username: `LI_${suffix}` },
    );
    const [zoe, otherZoe, mia, chen, wang, li] = items.map(({ account }) => account.username);
    expect(zoe).toBe(`zoe_angstrom_${suffix}`);
    expect(otherZoe).toMatch(new RegExp(`^zoe_angstrom_${suffix}_[0-9a-f]{4}$`));
    expect(mia).toBe(`mia_${suffix}`);
    expect(chen).toBe(suffix);
    expect(wang).toBe(`support_${suffix}`);
    expect(li).toBe(`li_${suffix}`);
    const again = await upsertAll(...items.map(({ external_id }) => ({ external_id })));
    expect(again.map(({ account }) => account)).toEqual(items.map(({ account }) => account));
  });

  test("takes 500 users, with the same name too", async () => {
    const users = Array.from({ length: 500 }, () => ({
      external_id: freshId(),
      display_name: `John ${process.pid}`,
    }));
    const items = await upsertAll(...users);
    expect(items.map(({ external_id }) => external_id)).toEqual(
      users.map(({ external_id }) => external_id),
    );
    expect(new Set(items.map(({ account }) => account.username)).size).toBe(500);
  });

  test("makes one account of an id that several calls create at once", async () => {
    const ids = Array.from({ length: 5 }, freshId);
    const users = ids.map((external_id) => ({ external_id, display_name: "Same" }));
    const calls = await Promise.all(
      [users, users.toReversed(), users].map((each) => upsertAll(...each)),
    );
    const accounts = new Set(calls.flat().map(({ account }) => account.username));
    expect(accounts.size).toBe(5);
    expect(calls.flat().filter(({ created }) => created)).toHaveLength(5);
  });

  test("is 409 for a username that is taken or changed, and stores nothing", async () => {
    const alice = await signUp(server.url, "alice");
    const [known, fresh] = [freshId(), freshId()];
    await upsert({ external_id: known });
    const { status, body } = await backend.post("upsertUsers", {
      users: [
        { external_id: fresh },
        { external_id: freshId(), username: alice.username },
        { external_id: known, username: "another_name" },
        { external_id: freshId(), username: "twice_given" },
        { external_id: freshId(), username: "twice_given" },
        { external_id: freshId(), username: "another_name" },
      ],
    });
    expect(status).toBe(409);
    expect(body).toMatchObject({
      parameters: {
        fields: {
          "users.1.username": "is taken",
          "users.2.username": "cannot be changed",
          "users.4.username": "is taken",
          "users.5.username": "is taken",
        },
      },
    });
    const missing = failure(backend.call("issueToken", { external_id: fresh }));
    expect(await missing).toMatchObject({ status: 404 });
  });

  test("is 400 beside the field that is wrong", async () => {
    const id = freshId();
    const tooMany = Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`k${n}`, ""]));
    for (const [user, field] of [
      [{ external_id: "" }, "external_id"],
      [{ external_id: "x".repeat(129) }, "external_id"],
      [{ external_id: " x" }, "external_id"],
      [{ external_id: "a\nb" }, "external_id"],
      [{ external_id: "a\u0000b" }, "external_id"],
      [{ external_id: "a\u202eb" }, "external_id"],
      [{ external_id: "\ud800" }, "external_id"],
      [{ external_id: 7 }, "external_id"],
      [{}, "external_id"],
      [{ external_id: id, username: "no spaces" }, "username"],
      [{ external_id: id, username: "admin" }, "username"],
      [{ external_id: id, display_name: "" }, "display_name"],
      [{ external_id: id, metadata: tooMany }, "metadata"],
      [{ external_id: id, metadata: { a: 1 } }, "metadata.a"],
      [{ external_id: id, metadata: { ["__proto__"]: "x" } }, "metadata.__proto__"],
      [{ external_id: id, metadata: { a: "x".repeat(513) } }, "metadata.a"],
    ] as const) {
      const { status, body } = await backend.post("upsertUsers", {
        users: [{ external_id: freshId() }, user],
      });
      expect({ user, status }).toEqual({ user, status: 400 });
      const { fields = {} } = (!body.ok && body.parameters) || {};
      expect(Object.keys(fields)).toEqual([`users.1.${field}`]);
    }
    const repeated = { users: [{ external_id: id }, { external_id: id }] };
    const { body } = await backend.post("upsertUsers", repeated);
    expect(body).toMatchObject({
      parameters: { fields: { "users.1.external_id": "is repeated" } },
    });
    const many = { users: Array.from({ length: 500 }, () => ({ external_id: id })) };
    const { body: shortened } = await backend.post("upsertUsers", many);
    const { fields = {} } = (!shortened.ok && shortened.parameters) || {};
    expect(Object.keys(fields)).toHaveLength(20);
  });

  test("is 400 for no users, and for ten thousand", async () => {
    for (const length of [0, 501, 10_000]) {
      const users = Array.from({ length }, (_, n) => ({ external_id: `${n}` }));
      const { status, body } = await backend.post("upsertUsers", { users });
      expect(status).toBe(400);
      const bound = length === 0 ? "not be empty" : "at most 500 ";
      expect(body).toMatchObject({
        parameters: { fields: { users: expect.stringContaining(bound) } },
      });
    }
  });

  test("is 413 for a body that is too large, and says the bound", async () => {
    const users = Array.from({ length: 10_000 }, (_, n) => ({
      external_id: `customer ${n}`,
      display_name: `Customer ${n}`,
    }));
    const { status, body } = await backend.post("upsertUsers", { users });
    expect(status).toBe(413);
    expect(body).toMatchObject({ description: expect.stringContaining("262144 bytes") });
  });
});

describe("issueToken", () => {
  test("signs a person in for an hour, which use does not extend", async () => {
    const external_id = freshId();
    const { account } = await upsert({ external_id });
    const issued = await backend.call("issueToken", { external_id });
    expect(issued).toEqual({
      access_token: expect.stringMatching(/^ply_/),
      expires_at: expect.stringMatching(TIMESTAMP),
      account,
      device: expect.any(String),
    });
    const seconds = (Date.parse(issued.expires_at) - Date.now()) / 1000;
    expect(Math.round(seconds / 60)).toBe(60);
    const { body } = await post(server.url, "getMe", {}, issued.access_token);
    expect(body).toEqual({ ok: true, result: { ...account, presence: "visible" } });
  });

  test("takes a username, and from a minute to 30 days", async () => {
    const bob = await signUp(server.url, "bob");
    const { username } = bob;
    const issued = await backend.call("issueToken", { username, expires_in: 30 * 24 * 3600 });
    expect(issued.account).toEqual(bob.account);
    const days = (Date.parse(issued.expires_at) - Date.now()) / (24 * 3600 * 1000);
    expect(Math.round(days)).toBe(30);
    for (const expires_in of [59, 30 * 24 * 3600 + 1, 0.5]) {
      const { code } = await failure(backend.call("issueToken", { username, expires_in }));
      expect(code).toBe("bad_request");
    }
  });

  test("opens sockets, for external ids in any script", async () => {
    const external_id = `Иван ${process.pid} ${freshId()}`;
    await upsert({ external_id });
    const ivan = await signedIn(external_id, 60);
    await using socket = await ivan.connect();
    expect(await socket.call("getMe")).toMatchObject(ivan.account);
    expect(await backend.as(`id:${external_id}`).call("getMe")).toMatchObject(ivan.account);
  });

  test("is 404 for nobody and for agents, and 400 without exactly one name", async () => {
    const { account } = await signUp(server.url, "carol");
    for (const person of [
      { external_id: "nobody" },
      { username: "nobody_here" },
      { username: `${account.username}:claude` },
    ]) {
      expect(await failure(backend.call("issueToken", person))).toMatchObject({ status: 404 });
    }
    for (const person of [{}, { external_id: "a", username: "b" }]) {
      expect(await failure(backend.call("issueToken", person))).toMatchObject({ status: 400 });
    }
  });

  test("is 400 for a malformed id, as is revokeTokens", async () => {
    for (const operation of ["issueToken", "revokeTokens"]) {
      for (const external_id of ["", "x".repeat(129), " x", "a\u0000b", "\ud800", 7, ["a"]]) {
        const { status, body } = await backend.post(operation, { external_id });
        expect({ external_id, status }).toEqual({ external_id, status: 400 });
        const { fields = {} } = (!body.ok && body.parameters) || {};
        expect(Object.keys(fields)).toEqual(["external_id"]);
      }
    }
  });

  test("is refused for a suspended person, whom upsertUsers does not restore", async () => {
    const external_id = freshId();
    const { account } = await upsert({ external_id });
    await backend.call("suspendAccount", { username: account.username });
    const { created } = await upsert({ external_id, display_name: "Another Name" });
    expect(created).toBe(false);
    const refused = { status: 403, code: "suspended" };
    expect(await failure(backend.call("issueToken", { external_id }))).toMatchObject(refused);
    expect(await failure(backend.as(`id:${external_id}`).call("getMe"))).toMatchObject(refused);
  });
});

test("revokeTokens ends all sessions of a person, and closes their sockets", async () => {
  const external_id = freshId();
  await upsert({ external_id });
  const [one, two] = [await signedIn(external_id), await signedIn(external_id)];
  await using socket = await two.connect();
  expect(await backend.call("revokeTokens", { external_id })).toEqual({ sessions_ended: 2 });
  await socket.until(() => socket.closed, "close");
  expect(socket.closed?.code).toBe(4401);
  expect((await post(server.url, "getMe", {}, one.token)).status).toBe(401);
  expect(await backend.call("revokeTokens", { external_id })).toEqual({ sessions_ended: 0 });
  const unknown = failure(backend.call("revokeTokens", { external_id: "nobody" }));
  expect(await unknown).toMatchObject({ status: 404 });
});

test("people cannot call the operations of backends, on either transport", async () => {
  const dora = await signUp(server.url, "dora");
  await using socket = await dora.connect();
  for (const caller of [dora, socket, backend.as(dora.username)]) {
    for (const call of [
      () => caller.call("upsertUsers", { users: [{ external_id: "1" }] }),
      () => caller.call("issueToken", { username: dora.username }),
      () => caller.call("revokeTokens", { username: dora.username }),
    ]) {
      expect((await failure(call())).code).toBe("forbidden");
    }
  }
});
