import { afterAll, describe, expect, test } from "bun:test";
import { closeCodes, type ErrorCode } from "@parley/protocol";
import {
  type Answer,
  type Caller,
  failure,
  groupOf,
  type Person,
  people,
  post,
  RawSocket,
  say,
  search,
  signUp,
  transports,
} from "@parley/testkit/client.ts";
import { externalAgent } from "@parley/testkit/external-agents.ts";
import { nodesOf, waitForOtherNodes } from "@parley/testkit/nodes.ts";
import { limits, noRates, startServer } from "@parley/testkit/server.ts";

const defaults = {
  frame_bytes: 262_144,
  page_size: 100,
  page_bytes: 1_048_576,
  group_participants: 1000,
  sockets_per_user: 20,
  messages_per_second: 20,
  message_burst: 100,
  operations_per_second: 100,
  operation_burst: 300,
  service_operations_per_second: 500,
  service_operation_burst: 1000,
  signups_per_hour: 1000,
  reports_per_hour: 60,
  exports_per_hour: 10,
  hooks_per_hour: 60,
  strangers_per_hour: 200,
  cost_per_second: 500,
  cost_burst: 5000,
  searches_per_second: 10,
  search_burst: 30,
  file_bytes: 26_214_400,
  files_per_message: 10,
  mentions_per_message: 100,
  image_pixels: 50_000_000,
  image_pixels_per_hour: 2_000_000_000,
  upload_bytes_per_day: 1_073_741_824,
  stored_file_bytes: 0,
  uploads_at_once: 4,
  reactions_per_message: 50,
  reactions_per_person: 20,
  backlog_bytes: 4_194_304,
  backlog_total_bytes: 268_435_456,
  idle_seconds: 60,
  session_days: 90,
  confirm_minutes: 15,
};

const small = {
  frame_bytes: 2048,
  page_size: 3,
  group_participants: 3,
  sockets_per_user: 3,
  messages_per_second: 0,
};
const server = await startServer(limits(small));
afterAll(() => server[Symbol.asyncDispose]());

describe("GET /api/limits", () => {
  const inForce = async (url: string) => (await fetch(`${url}/api/limits`)).json();

  test("shows the defaults", async () => {
    await using untouched = await startServer();
    expect(await inForce(untouched.url)).toEqual({ ok: true, result: defaults });
  });

  test("shows the overrides of PARLEY_LIMITS", async () => {
    expect(await inForce(server.url)).toEqual({
      ok: true,
      result: { ...defaults, ...small, cost_per_second: 0, strangers_per_hour: 0 },
    });
  });
});

describe("frame_bytes", () => {
  const MAX = small.frame_bytes;
  const padded = (length: number) => {
    const frame = { method: "getMe", padding: "" };
    return { ...frame, padding: "x".repeat(length - JSON.stringify(frame).length) };
  };

  test("is the largest body; a larger one is 413", async () => {
    const person = await signUp(server.url);
    const status = async (length: number) =>
      (await post(server.url, "getMe", padded(length), person.token)).status;
    expect(await status(MAX)).toBe(200);
    expect(await status(MAX + 1)).toBe(413);
  });

  test("is the largest frame; a larger one closes the socket with 1009", async () => {
    const person = await signUp(server.url);
    await using socket = await person.connect();
    await using bystander = await person.connect();
    socket.send(padded(MAX));
    await socket.until(() => socket.replies.length > 0, "the reply");
    expect(socket.replies).toEqual([
      { ok: true, result: { ...person.account, presence: "visible" } },
    ]);
    socket.send(padded(MAX + 1));
    await socket.until(() => socket.closed, "close");
    expect(socket.closed?.code).toBe(1009);
    expect(await bystander.call("getMe")).toMatchObject(person.account);
  });
});

test("page_size is the largest page, and limits the default too", async () => {
  const person = await signUp(server.url);
  const chat = await groupOf(person);
  for (let n = 0; n < 5; n++) await say(person, chat, "hello");
  for (const limit of [{}, { limit: 100 }]) {
    const { items } = await person.call("getChatHistory", { chat_id: chat.id, ...limit });
    expect(items).toHaveLength(3);
    const { items: found } = await search(person, { query: "hello", ...limit });
    expect(found).toHaveLength(3);
    const updates = await person.call("getUpdates", { chat_id: chat.id, since_seq: 0, ...limit });
    expect(updates).toMatchObject({ messages: { length: 3 }, has_more: true });
  }
});

test("group_participants is the largest group, agents included", async () => {
  const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
  const agent = { username: `${alice.username}:claude` };
  const tooMany = await failure(groupOf(alice, bob, carol, agent));
  expect(tooMany.code).toBe("bad_request");
  expect(tooMany.parameters?.fields).toHaveProperty("usernames");
  const chat = await groupOf(alice, bob, carol);
  const join = alice.call("addChatMembers", { chat_id: chat.id, usernames: [agent.username] });
  expect((await failure(join)).parameters?.fields).toHaveProperty("usernames");
  expect((await alice.call("getChat", { chat_id: chat.id })).participant_count).toBe(3);
});

describe("sockets_per_user", () => {
  const open = ({ token }: Person) => RawSocket.open(server.url, `/api/ws?token=${token}`);
  /** Every node knows which sockets are open on the others. */
  const counted = () =>
    Promise.all(nodesOf(server.url).map((node) => waitForOtherNodes(server.url, node)));

  test("is the number of sockets that an account may have open; one more is 429", async () => {
    const [alice, bob] = await people(server.url, "alice", "bob");
    await using _one = await alice.connect();
    await using _two = await alice.connect();
    const three = await alice.connect();
    await counted();
    await using fourth = await open(alice);
    expect(fourth.answer?.status).toBe(429);
    expect(JSON.parse(fourth.answer?.body ?? "")).toMatchObject({
      error_code: 429,
      code: "rate_limited",
      parameters: { retry_after: expect.any(Number) },
    });
    await using _other = await bob.connect();
    await three.close();
    await counted();
    await using _again = await alice.connect();
  });

  test("holds for the programs of all external agents of a person together", async () => {
    const alice = await signUp(server.url);
    const node = nodesOf(server.url).at(-1) as string;
    const programs = [await externalAgent(alice), await externalAgent(alice)];
    const [one, two] = programs.map(({ agent }) => agent) as [Person, Person];
    const openAt = ({ token }: Person) => RawSocket.open(node, `/api/ws?token=${token}`);
    const sockets = [await openAt(one), await openAt(two), await openAt(two)];
    await using fourth = await openAt(one);
    expect(sockets.map(({ answer }) => answer?.status)).toEqual([101, 101, 101]);
    expect(fourth.answer?.status).toBe(429);
    await using _own = await alice.connect();
    for (const socket of sockets) socket.tcp.destroy();
  });

  test("holds for sockets that are opened concurrently", async () => {
    const person = await signUp(server.url);
    const opened = await Promise.all(Array.from({ length: 10 }, () => open(person)));
    const upgraded = opened.filter(({ answer }) => answer?.status === 101);
    for (const socket of opened) socket.tcp.destroy();
    expect(upgraded).toHaveLength(3);
  });
});

describe.concurrent("over time", () => {
  const rates = limits({
    messages_per_second: 1,
    message_burst: 3,
    operations_per_second: 1,
    operation_burst: 20,
  });

  /** Calls until a call is refused. Returns the number of calls before it. */
  async function exhaust(call: () => Promise<unknown>, passedOver?: ErrorCode) {
    for (let count = 0; count < 50; count++) {
      const outcome = await call().catch((error: unknown) => error);
      if (!(outcome instanceof Error)) continue;
      const failed = await failure(Promise.reject(outcome));
      if (failed.code !== passedOver) return { count, failed };
    }
    throw new Error("there was no limit");
  }

  /** The refusal among many calls at once: a slow machine would regain some between single ones. */
  async function refusalOf(calls: Promise<unknown>[]) {
    const outcomes = await Promise.allSettled(calls);
    const refused = outcomes.find(({ status }) => status === "rejected");
    if (!refused) throw new Error("there was no limit");
    return failure(Promise.reject((refused as PromiseRejectedResult).reason));
  }

  async function untilRefused(person: Person): Promise<Answer> {
    const given = await post(person.url, "getMe", {}, person.token);
    return given.status === 429 ? given : untilRefused(person);
  }

  test.each(transports)(
    "messages over %s are taken up to a burst, then 429 with retry_after",
    async (transport) => {
      await using server = await startServer(rates);
      // Nodes share their counts with a delay, so that this test uses one node.
      const node = nodesOf(server.url).at(-1) as string;
      const [alice, bob] = await people(node, "alice", "bob");
      const chat = await groupOf(alice, bob);
      await using caller: Caller = await alice.via(transport);
      const { count, failed } = await exhaust(() => say(caller, chat, "hello"));
      expect(count).toBeGreaterThanOrEqual(3);
      expect(failed.code).toBe("rate_limited");
      const retry_after = failed.parameters?.retry_after ?? 0;
      expect(retry_after).toBeGreaterThanOrEqual(1);
      // Other operations and other people are not limited.
      expect(await caller.call("getMe")).toMatchObject(alice.account);
      expect((await say(bob, chat, "hello")).content).toBe("hello");
      await server.moveClock(retry_after * 1000);
      expect((await say(caller, chat, "hello")).content).toBe("hello");
    },
  );

  test("component actions count as messages", async () => {
    // A bucket of their own would take 30 messages. Time that passes between two calls allows a few.
    await using server = await startServer(limits({ messages_per_second: 1, message_burst: 30 }));
    const node = nodesOf(server.url).at(-1) as string;
    const [alice, bob] = await people(node, "alice", "bob");
    const chat = await groupOf(alice, bob);
    const { id } = await say(bob, chat, "hello");
    const press = { chat_id: chat.id, message_id: id, action: "refresh" };
    const presses = Array.from({ length: 50 }, () => alice.call("sendComponentAction", press));
    const failed = await refusalOf(presses);
    expect(failed.code).toBe("rate_limited");
    const messages = await exhaust(() => say(alice, chat, "hello"));
    expect(messages.failed.code).toBe("rate_limited");
    expect(messages.count).toBeLessThan(30);
    expect(await alice.call("getMe")).toMatchObject(alice.account);
  });

  test("the programs of all external agents of a person share a rate, apart from the person's", async () => {
    // Two buckets would take 60 messages.
    await using server = await startServer(limits({ messages_per_second: 1, message_burst: 30 }));
    const node = nodesOf(server.url).at(-1) as string;
    const [alice, bob] = await people(node, "alice", "bob");
    const { agent: one, chat } = await externalAgent(alice);
    const { agent: two, chat: other } = await externalAgent(alice);
    const { agent: stranger, chat: elsewhere } = await externalAgent(bob);
    const messages = Array.from({ length: 50 }, (_, n) =>
      n % 2 === 0 ? say(one, chat, "hello") : say(two, other, "hello"),
    );
    const failed = await refusalOf(messages);
    expect(failed.code).toBe("rate_limited");
    expect((await say(alice, chat, "hello")).content).toBe("hello");
    expect((await say(stranger, elsewhere, "hello")).content).toBe("hello");
  });

  test("searches have their own rate", async () => {
    await using server = await startServer(limits({ searches_per_second: 1, search_burst: 2 }));
    const person = await signUp(server.url);
    const { failed } = await exhaust(
      () => person.call("searchMessages", { query: "word" }),
      // A search may reach its deadline on a busy machine.
      "unavailable",
    );
    expect(failed).toMatchObject({ code: "rate_limited", status: 429 });
    expect(failed.parameters?.retry_after).toBeGreaterThanOrEqual(1);
    expect(await person.call("getMe")).toMatchObject(person.account);
  });

  test("other operations are counted separately, for both transports together", async () => {
    await using server = await startServer(rates);
    const person = await signUp(server.url);
    const chat = await groupOf(person);
    await using socket = await person.connect();
    const failed = await refusalOf(Array.from({ length: 60 }, () => person.call("getMe")));
    expect(failed).toMatchObject({ code: "rate_limited", status: 429 });
    const { count } = await exhaust(() => socket.call("getMe"));
    expect(count).toBeLessThan(10);
    expect((await say(socket, chat, "hello")).content).toBe("hello");
    const refused = await untilRefused(person);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  });

  test("a client that answers no ping is closed after idle_seconds", async () => {
    // Bun measures it, so that the clock cannot be moved. The polite client has half of it to answer a ping.
    await using server = await startServer(limits({ idle_seconds: 16 }));
    const [silent, polite] = await people(server.url, "silent", "polite");
    await using lively = await polite.connect();
    await using quiet = await RawSocket.connect(silent);
    await quiet.until(() => quiet.closed, "close");
    expect(lively.closed).toBeNull();
    expect(await lively.call("getMe")).toMatchObject(polite.account);
  });

  test("zero lifts a rate", async () => {
    await using server = await startServer(noRates);
    const person = await signUp(server.url);
    const chat = await groupOf(person);
    await using socket = await person.connect();
    await Promise.all(Array.from({ length: 400 }, () => socket.call("getMe")));
    await Promise.all(Array.from({ length: 150 }, () => say(socket, chat, "hello")));
  });
});

/** The number of open sockets on all nodes, from the metrics. */
const openSockets = async (url: string) => {
  const counts = nodesOf(url).map(async (node) => {
    const text = await (await fetch(`${node}/metrics`)).text();
    return Number(/^parley_sockets (\d+)/m.exec(text)?.[1]);
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
};

describe.concurrent("a client that does not read", () => {
  const LARGE = "x".repeat(32_000);
  // Such a client answers no ping, and must not be closed for that on a slow machine.
  const patient = { messages_per_second: 0, operations_per_second: 0, idle_seconds: 600 };

  test("is closed, misses no event before that, and catches up with getUpdates", async () => {
    await using server = await startServer(limits({ ...patient, backlog_bytes: 262_144 }));
    const [alice, bob] = await people(server.url, "alice", "bob");
    const chat = await groupOf(alice, bob);
    await using slow = await RawSocket.connect(bob);
    slow.tcp.pause();
    // Over HTTP: a socket that receives so much at once may become a slow one too.
    for (let round = 0; (await openSockets(server.url)) > 0 && round < 60; round++) {
      await Promise.all(Array.from({ length: 30 }, () => say(alice, chat, LARGE)));
    }
    expect(await openSockets(server.url)).toBe(0);
    await say(alice, chat, "after the close");
    slow.tcp.resume();
    const { code } = await slow.until(() => slow.closed, "close");
    expect(code).toBeOneOf([4408, 1006]);
    const seen = slow.texts.slice(1).map((text) => JSON.parse(text).at.seq as number);
    expect(seen).toEqual(seen.map((_, index) => chat.seq + 1 + index));
    const since_seq = seen.at(-1) ?? chat.seq;
    const missed = await bob.call("getUpdates", { chat_id: chat.id, since_seq, limit: 1 });
    expect(missed).toMatchObject({ messages: [{ seq: since_seq + 1 }] });
  });

  test("receives code 4408 after everything that was sent before", async () => {
    await using server = await startServer(limits({ ...patient, backlog_bytes: 262_144 }));
    const [alice, bob] = await people(server.url, "alice", "bob");
    const chat = await groupOf(alice, bob);
    await using sender = await alice.connect();
    await using slow = await RawSocket.connect(bob);
    slow.tcp.pause();
    while ((await openSockets(server.url)) > 1) await say(sender, chat, LARGE);
    slow.tcp.resume();
    expect(await slow.until(() => slow.closed, "close")).toEqual({ code: closeCodes.tooSlow });
    const seen = slow.texts.slice(1).map((text) => JSON.parse(text).at.seq as number);
    expect(seen).toEqual(seen.map((_, index) => chat.seq + 1 + index));
    await server.printed(/slow socket closed: backlog_bytes exceeded/);
  });

  test("is terminated first if it is furthest behind while all exceed the total", async () => {
    await using server = await startServer(limits({ ...patient, backlog_total_bytes: 2_097_152 }));
    const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
    const [busy, quiet] = [await groupOf(alice, bob), await groupOf(alice, carol)];
    // Both on one node: the limit is per node.
    const node = nodesOf(server.url)[0] as string;
    await using slowest = await RawSocket.connect({ url: node, token: bob.token });
    await using slow = await RawSocket.connect({ url: node, token: carol.token });
    for (const { tcp } of [slowest, slow]) tcp.pause();
    await say(alice, quiet, LARGE);
    for (let round = 0; (await openSockets(server.url)) > 1 && round < 60; round++) {
      await Promise.all(Array.from({ length: 10 }, () => say(alice, busy, LARGE)));
    }
    for (const { tcp } of [slowest, slow]) tcp.resume();
    await slowest.until(() => slowest.closed, "close");
    await slow.until(() => slow.texts.length > 1, "what was sent meanwhile");
    expect(slow.closed).toBeNull();
    await server.printed(/backlog_total_bytes exceeded/);
    const metrics = await (await fetch(`${node}/metrics`)).text();
    expect(metrics).toMatch(/^parley_backlog_bytes \d+$/m);
  });

  test("is slowed down, not closed, while it calls and does not read its replies", async () => {
    await using server = await startServer(limits(patient));
    const person = await signUp(server.url);
    const chat = await groupOf(person);
    await Promise.all(Array.from({ length: 10 }, () => say(person, chat, LARGE)));
    await using slow = await RawSocket.connect(person);
    slow.tcp.pause();
    const CALLS = 120;
    for (let id = 0; id < CALLS; id++) {
      const params = { conversation_id: chat.id };
      slow.send(JSON.stringify({ method: "messages.history", params, id }));
    }
    // Other calls are served meanwhile, which gives the server time to exceed its limits.
    for (let n = 0; n < 50; n++) await person.call("getChatHistory", { chat_id: chat.id });
    slow.tcp.resume();
    await slow.until(() => slow.texts.length > CALLS || slow.closed, "all replies");
    expect(slow.closed).toBeNull();
    const ids = slow.texts.slice(1).map((text) => JSON.parse(text).id as number);
    expect(ids.toSorted((a, b) => a - b)).toEqual(Array.from({ length: CALLS }, (_, id) => id));
  });
});
