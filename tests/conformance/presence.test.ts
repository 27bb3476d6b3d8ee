import { afterAll, describe, expect, test } from "bun:test";
import type { Presence } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  agentOf,
  failure,
  groupOf,
  outcome,
  Person,
  people,
  type Socket,
  signUp,
  transports,
} from "@parley/testkit/client.ts";
import { externalAgent } from "@parley/testkit/external-agents.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";

const server = await startServer({ ...noRates, ...serviceKeySetting() });
const backend = new Backend(server.url);
afterAll(() => server[Symbol.asyncDispose]());

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** How the presence of somebody is shown of whom nothing is told. */
const nothing = ({ username }: { username: string }): Presence => ({
  username,
  online: false,
  last_seen_at: null,
});
const online = ({ username }: { username: string }): Presence => ({
  username,
  online: true,
  last_seen_at: null,
});

const watch = async (caller: Pick<Person | Backend, "call">, ...others: { username: string }[]) =>
  (await caller.call("watchPresence", { usernames: others.map(({ username }) => username) })).items;

/** What the socket was told of a person by events. */
const told = async (socket: Socket, { username }: { username: string }) =>
  (await socket.settledEvents("events.presence", (params) => params.username === username)).map(
    ({ params }) => params,
  );

/** Waits until a call of a person shows somebody as online, or not: nodes tell each other. */
const untilShown = (caller: Person, other: Person, isOnline: boolean) =>
  until(async () => (await watch(caller, other))[0]?.online === isOnline, "presence is shown");

/** Two people with a direct conversation, and sockets. The first one watches the other. */
async function watching() {
  const [alice, bob] = await people(server.url, "alice", "bob");
  const chat = await alice.call("startChat", { usernames: [bob.username] });
  const sockets = new AsyncDisposableStack();
  const watcher = sockets.use(await alice.connect());
  const watched = sockets.use(await bob.connect());
  await untilShown(alice, bob, true);
  expect(await watch(watcher, bob)).toEqual([online(bob)]);
  return {
    ...{ alice, bob, chat, watcher, watched },
    [Symbol.asyncDispose]: () => sockets[Symbol.asyncDispose](),
  };
}

describe("watchPresence", () => {
  test.each(transports)("tells over %s who is online, in the order asked", async (transport) => {
    const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
    await groupOf(alice, bob, carol);
    await using _ = await bob.connect();
    await untilShown(alice, bob, true);
    await using caller = await alice.via(transport);
    const usernames = [carol.username, bob.username.toUpperCase(), carol.username];
    const { items } = await caller.call("watchPresence", { usernames });
    expect(items).toEqual([nothing(carol), online(bob), nothing(carol)]);
  });

  test("tells a socket when somebody comes online and goes offline", async () => {
    const [alice, bob] = await people(server.url, "alice", "bob");
    await groupOf(alice, bob);
    await using watcher = await alice.connect();
    await using other = await alice.connect();
    expect(await watch(watcher, bob)).toEqual([nothing(bob)]);
    const first = await bob.connect();
    await watcher.event("events.presence", (params) => params.online);
    const second = await bob.connect();
    await first.close();
    expect(await told(watcher, bob)).toEqual([online(bob)]);
    await second.close();
    const { params } = await watcher.event("events.presence", (each) => !each.online);
    expect(params.last_seen_at).toMatch(/:\d[05]:00\.000Z$/);
    expect(await told(watcher, bob)).toEqual([online(bob), params]);
    expect(await watch(alice, bob)).toEqual([params]);
    expect(await told(other, bob)).toEqual([]);
  });

  test("replaces what the socket watches", async () => {
    const { alice, watcher, bob, watched } = await watching();
    const carol = await signUp(server.url, "carol");
    await groupOf(alice, bob, carol);
    expect(await watch(watcher, carol)).toEqual([nothing(carol)]);
    await watched.close();
    await untilShown(alice, bob, false);
    await using _ = await carol.connect();
    await watcher.event("events.presence", ({ username }) => username === carol.username);
    expect(await told(watcher, bob)).toEqual([]);
    expect(await watch(watcher)).toEqual([]);
    await watcher.close();
  });

  test("watches nothing over HTTP", async () => {
    const [alice, bob] = await people(server.url, "alice", "bob");
    await groupOf(alice, bob);
    await using socket = await alice.connect();
    expect(await watch(alice, bob)).toEqual([nothing(bob)]);
    await using _ = await bob.connect();
    await untilShown(alice, bob, true);
    expect(await told(socket, bob)).toEqual([]);
  });

  test("takes at most 200 usernames", async () => {
    const alice = await signUp(server.url, "alice");
    const usernames = Array.from({ length: 201 }, (_, n) => `nobody_${n}`);
    expect(await outcome(alice.call("watchPresence", { usernames }))).toBe("bad_request");
    const { items } = await alice.call("watchPresence", { usernames: usernames.slice(1) });
    expect(items).toHaveLength(200);
  });
});

describe("nothing is told", () => {
  test("of strangers, agents, hooks, oneself, and names that do not exist, all alike", async () => {
    const [alice, stranger] = await people(server.url, "alice", "stranger");
    const { agent } = await externalAgent(alice);
    await using _ = await stranger.connect();
    await using _program = await agent.connect();
    await using own = await alice.connect();
    const usernames = [
      stranger.username,
      agent.username,
      agentOf(alice),
      alice.username,
      "nobody there!",
      "__proto__",
    ];
    for (const caller of [alice, own]) {
      const { items } = await caller.call("watchPresence", { usernames });
      expect(items).toEqual(usernames.map((username) => nothing({ username })));
    }
  });

  test("to agents: their tokens may not ask", async () => {
    const { agent } = await externalAgent(await signUp(server.url, "alice"));
    for (const call of [
      () => agent.call("watchPresence", { usernames: [] }),
      () => agent.call("setActivity", { active: true }),
    ]) {
      expect((await failure(call())).code).toBe("forbidden");
    }
  });

  test("because of calls that are no sockets, also on somebody's behalf", async () => {
    const [alice, bob] = await people(server.url, "alice", "bob");
    await groupOf(alice, bob);
    await bob.call("getChats", {});
    await backend.as(bob.username).call("getChats", {});
    expect(await watch(alice, bob)).toEqual([nothing(bob)]);
    expect(await watch(backend.as(alice.username), bob)).toEqual([nothing(bob)]);
  });

  test("among people who share only a group of more than 100", async () => {
    const made = await backend.call("upsertUsers", {
      users: Array.from({ length: 100 }, () => ({ external_id: Bun.randomUUIDv7() })),
    });
    const [alice, bob] = await people(server.url, "alice", "bob");
    const usernames = made.items.map(({ account }) => account.username);
    const chat = await alice.call("startChat", {
      usernames: [bob.username, ...usernames.slice(0, 98)],
      kind: "group",
    });
    const chat_id = chat.id;
    await alice.call("addGroupAgent", { chat_id, agent_username: agentOf(alice) });
    await using watcher = await alice.connect();
    await using _ = await bob.connect();
    await untilShown(alice, bob, true);
    expect(await watch(watcher, bob)).toEqual([online(bob)]);

    await alice.call("addChatMembers", { chat_id, usernames: usernames.slice(98, 99) });
    await watcher.event("events.presence", (params) => !params.online);
    expect(await watch(alice, bob)).toEqual([nothing(bob)]);
    await alice.call("addChatMembers", { chat_id, usernames: usernames.slice(99) });
    await alice.call("removeChatMember", { chat_id, username: usernames[99] as string });
    expect(await told(watcher, bob)).toEqual([nothing(bob)]);
    await alice.call("removeChatMember", { chat_id, username: usernames[98] as string });
    await watcher.event("events.presence", (params) => params.online);
    expect(await told(watcher, bob)).toEqual([nothing(bob), online(bob)]);
  });
});

describe("what is told ends at once, and begins again", () => {
  type Watching = Awaited<ReturnType<typeof watching>>;
  const ends: Record<string, [(setup: Watching) => unknown, (setup: Watching) => unknown]> = {
    "when the person hides": [
      ({ bob }) => bob.call("updateMe", { presence: "hidden" }),
      ({ bob }) => bob.call("updateMe", { presence: "visible" }),
    ],
    "when the watcher hides": [
      ({ alice }) => alice.call("updateMe", { presence: "hidden" }),
      ({ alice }) => alice.call("updateMe", { presence: "visible" }),
    ],
    "when the person blocks the watcher": [
      ({ alice, bob }) => bob.call("blockUser", { username: alice.username }),
      ({ alice, bob }) => bob.call("unblockUser", { username: alice.username }),
    ],
    "when the watcher blocks the person": [
      ({ alice, bob }) => alice.call("blockUser", { username: bob.username }),
      ({ alice, bob }) => alice.call("unblockUser", { username: bob.username }),
    ],
  };
  test.each(Object.entries(ends))("%s", async (_, [end, begin]) => {
    await using setup = await watching();
    const { alice, bob, watcher } = setup;
    await end(setup);
    await watcher.event("events.presence", (params) => !params.online);
    expect(await told(watcher, bob)).toEqual([nothing(bob)]);
    expect(await watch(alice, bob)).toEqual([nothing(bob)]);
    await using second = await bob.connect();
    await second.close();
    expect(await told(watcher, bob)).toEqual([nothing(bob)]);
    await begin(setup);
    await watcher.event("events.presence", (params) => params.online);
    expect(await told(watcher, bob)).toEqual([nothing(bob), online(bob)]);
  });

  test("when the last shared conversation is lost", async () => {
    const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
    const [one, two] = [await groupOf(alice, bob, carol), await groupOf(carol, alice, bob)];
    await using watcher = await alice.connect();
    await using back = await bob.connect();
    await untilShown(alice, bob, true);
    expect(await watch(watcher, bob, carol)).toEqual([online(bob), nothing(carol)]);
    expect(await watch(back, alice)).toEqual([online(alice)]);
    await bob.call("leaveChat", { chat_id: one.id });
    expect(await told(watcher, bob)).toEqual([]);
    await carol.call("removeChatMember", { chat_id: two.id, username: alice.username });
    await watcher.event("events.presence", (params) => !params.online);
    await back.event("events.presence", (params) => !params.online);
    expect(await told(watcher, bob)).toEqual([nothing(bob)]);
    expect(await told(back, alice)).toEqual([nothing(alice)]);
    await bob.call("startChat", { usernames: [alice.username] });
    await watcher.event("events.presence", (params) => params.online);
    await back.event("events.presence", (params) => params.online);
  });

  test("also for somebody who is offline: the time is not told any more", async () => {
    await using setup = await watching();
    const { alice, bob, watcher, watched } = setup;
    await watched.close();
    const { params } = await watcher.event("events.presence", (each) => !each.online);
    expect(params.last_seen_at).not.toBeNull();
    await bob.call("updateMe", { presence: "hidden" });
    await watcher.event("events.presence", (each) => each.last_seen_at === null && !each.online);
    expect(await watch(alice, bob)).toEqual([nothing(bob)]);
    await bob.call("updateMe", { presence: "visible" });
    await until(async () => (await told(watcher, bob)).length === 3, "the time is told again");
    expect((await told(watcher, bob)).at(-1)).toEqual(params);
  });

  test("when the account is deleted", async () => {
    await using setup = await watching();
    const { alice, bob, watcher } = setup;
    await backend.call("eraseAccount", { username: bob.username });
    await watcher.event("events.presence", (params) => !params.online);
    await until(
      async () => Bun.deepEquals(await watch(alice, bob), [nothing(bob)]),
      "nothing is told of a deleted account",
    );
  });
});

test("getMe alone shows whether the person is hidden", async () => {
  const [alice, bob] = await people(server.url, "alice", "bob");
  expect((await alice.call("getMe")).presence).toBe("visible");
  expect((await alice.call("updateMe", { presence: "hidden" })).presence).toBe("hidden");
  expect((await alice.call("getMe")).presence).toBe("hidden");
  expect(await bob.call("getUser", { username: alice.username })).not.toContainKey("presence");
  const { agent } = await externalAgent(alice);
  expect(await agent.call("getMe")).not.toContainKey("presence");
  const wrong = { presence: "away" } as unknown as { presence: "hidden" };
  expect(await outcome(alice.call("updateMe", wrong))).toBe("bad_request");
  expect(await outcome(alice.call("updateMe", {}))).toBe("bad_request");
});

test("a session that has ended makes nobody online", async () => {
  await using setup = await watching();
  const { bob, watcher } = setup;
  await bob.call("signOut");
  await watcher.event("events.presence", (params) => !params.online);
});

test("setActivity answers over both transports", async () => {
  const alice = await signUp(server.url, "alice");
  await using socket = await alice.connect();
  for (const caller of [alice, socket]) {
    for (const active of [true, true, false]) await caller.call("setActivity", { active });
  }
  const wrong = { active: "yes" } as unknown as { active: boolean };
  expect(await outcome(alice.call("setActivity", wrong))).toBe("bad_request");
});

test("the time is rounded down, further the longer it is ago", async () => {
  await using own = await startServer(noRates);
  const [alice, bob] = await people(own.url, "alice", "bob");
  await groupOf(alice, bob);
  const socket = await bob.connect();
  await untilShown(alice, bob, true);
  await socket.close();
  await untilShown(alice, bob, false);
  const at = own.now();
  const shown = async () => Date.parse((await watch(alice, bob))[0]?.last_seen_at ?? "");
  /** The time may be from just before. */
  const expectRounded = async (stepMs: number) =>
    expect([at, at - 1000].map((each) => each - (each % stepMs))).toContain(await shown());
  await expectRounded(5 * MINUTE_MS);
  await own.moveClock(50 * MINUTE_MS);
  await expectRounded(5 * MINUTE_MS);
  await own.moveClock(15 * MINUTE_MS);
  await expectRounded(HOUR_MS);
  await own.moveClock(24 * HOUR_MS);
  await expectRounded(DAY_MS);
});

test("the time survives a restart", async () => {
  await using own = await startServer(noRates);
  const [alice, bob] = await people(own.url, "alice", "bob");
  await groupOf(alice, bob);
  const socket = await bob.connect();
  await untilShown(alice, bob, true);
  await socket.close();
  await untilShown(alice, bob, false);
  const before = await watch(alice, bob);
  await own.stop();
  await own.restart();
  const again = new Person(own.url, alice.token, alice.account);
  expect(await watch(again, bob)).toEqual(before);
});
