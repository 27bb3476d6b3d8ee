import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { availableParallelism } from "node:os";
import type { Message } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  agentOf,
  failure,
  groupOf,
  type Person,
  people,
  post,
  RawSocket,
  say,
  search,
  signUp,
} from "@parley/testkit/client.ts";
import { put } from "@parley/testkit/files.ts";
import { nodesOf } from "@parley/testkit/nodes.ts";
import { stripedPng } from "@parley/testkit/pictures.ts";
import { limits, startServer, type TestServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";

/** A budget that does not refill while a test runs. */
const budget = (cost_burst: number, others: Record<string, number> = {}) =>
  limits({ cost_per_second: 1, cost_burst, ...others });

/** The person at one node: the nodes share what was spent a little later. */
const atOneNode = (server: TestServer, person: Person) =>
  person.at(nodesOf(server.url)[0] as string);

/** How many calls succeed before one is refused with `rate_limited`. */
async function callsUntilRefused(call: () => Promise<unknown>): Promise<number> {
  for (let calls = 0; ; calls++) {
    try {
      await call();
    } catch (error) {
      const { code, parameters } = await failure(Promise.reject(error));
      expect({ code, parameters }).toEqual({
        code: "rate_limited",
        parameters: { retry_after: expect.any(Number) },
      });
      return calls;
    }
  }
}

describe.concurrent("the cost of calls", () => {
  test("is limited per account: expensive calls are refused earlier than plain ones", async () => {
    await using server = await startServer(budget(40));
    const [alice, bob] = await people(server.url, "alice", "bob");
    const chat = await groupOf(atOneNode(server, alice));
    const history = (person: Person) =>
      callsUntilRefused(() => person.call("getChatHistory", { chat_id: chat.id }));
    const calls = await history(atOneNode(server, alice));
    expect(calls).toBeWithin(6, 12);
    expect(await callsUntilRefused(() => atOneNode(server, bob).call("getMe"))).toBeWithin(40, 60);
  });

  test("large pictures of one person delay those of others by one at most", async () => {
    await using server = await startServer();
    const [alice, bob] = await people(server.url, "alice", "bob");
    const chat = await groupOf(alice, bob);
    const upload = async (person: Person, picture: Uint8Array<ArrayBuffer>) => {
      const announced = { chat_id: chat.id, name: "picture.png", size: picture.length };
      const { upload_url } = await atOneNode(server, person).call("createUpload", announced);
      return () => put(upload_url, picture);
    };
    const large = stripedPng(4000, 1500, [255, 0, 0], [0, 0, 255]);
    const uploads = await Promise.all([1, 2, 3, 4].map(() => upload(alice, large)));
    const small = await upload(bob, stripedPng(20, 20, [255, 0, 0]));
    let done = 0;
    const ends = uploads.map(async (send) => {
      expect((await send()).status).toBe(200);
      done++;
    });
    await Promise.race(ends);
    // Those that are being decoded when the small one arrives, and the one before.
    const most = 1 + Math.min(2, Math.max(1, availableParallelism() - 1));
    expect((await small()).status).toBe(200);
    expect(done).toBeLessThanOrEqual(most);
    await Promise.all(ends);
  });

  test("includes calls that are refused because of their rate", async () => {
    await using server = await startServer(
      budget(50, { operations_per_second: 1, operation_burst: 10 }),
    );
    const [alice, bob] = await people(server.url, "alice", "bob");
    const chat = await groupOf(bob, alice);
    const one = atOneNode(server, alice);
    await using socket = await RawSocket.connect(one);
    for (let n = 0; n < 200; n++) socket.send("no frame");
    // Then it is read no further.
    await socket.until(() => socket.texts.length > 50, "the refusals");
    expect(await failure(say(one, chat, "hello"))).toMatchObject({ code: "rate_limited" });
  });

  test("includes the time that the markup of an incoming hook takes", async () => {
    await using server = await startServer(budget(1000, { message_burst: 100 }));
    const [alice, bob] = await people(server.url, "alice", "bob");
    const chat = await groupOf(alice, bob);
    const { url } = await alice.call("createIncomingHook", { chat_id: chat.id, name: "markup" });
    const body = JSON.stringify({ text: "*\n".repeat(16_000) });
    let posts = 0;
    while ((await fetch(url, { method: "POST", body })).ok) posts++;
    // By its bytes, a post costs 190.
    expect(posts).toBeLessThan(5);
  });

  test("includes the time that a search takes", async () => {
    await using server = await startServer(budget(3000, { message_burst: 100 }));
    const [alice, bob] = await people(server.url, "alice", "bob");
    const chat = await groupOf(alice, bob);
    const words = Array.from({ length: 6500 }, (_, n) => `a${((n * 7919) % 46_656).toString(36)}`);
    for (let n = 0; n < 30; n++) await say(bob, chat, words.join(" "));
    const one = atOneNode(server, alice);
    const calls = await callsUntilRefused(() => search(one, { query: "a", limit: 1 }));
    // A search costs 40, and some more for its answer.
    expect(calls).toBeLessThan(36);
  });

  test("includes the bytes of answers, also beyond what is left", async () => {
    await using server = await startServer(budget(500, { message_burst: 100 }));
    const [alice, bob] = await people(server.url, "alice", "bob");
    const chat = await groupOf(alice, bob);
    for (let n = 0; n < 6; n++) await say(atOneNode(server, alice), chat, "x".repeat(32_000));
    // Six messages of 32,000 bytes cost 11 besides the call.
    const calls = await callsUntilRefused(() =>
      atOneNode(server, bob).call("getChatHistory", { chat_id: chat.id }),
    );
    expect(calls).toBeWithin(30, 50);
  });

  test("includes the bytes of answers in UTF-8 over HTTP", async () => {
    await using server = await startServer(budget(200, { message_burst: 100 }));
    const [alice, bob] = await people(server.url, "alice", "bob");
    const chat = await groupOf(alice, bob);
    const one = atOneNode(server, alice);
    for (let n = 0; n < 6; n++) await say(one, chat, "\u6f22".repeat(10_900));
    // Six messages of 32,700 bytes cost 11 besides the call; by their characters 3.
    const calls = await callsUntilRefused(() =>
      atOneNode(server, bob).call("getChatHistory", { chat_id: chat.id }),
    );
    expect(calls).toBeWithin(10, 16);
  });

  test("includes the length of messages, which are also indexed", async () => {
    await using server = await startServer(budget(100, { message_burst: 100 }));
    const one = atOneNode(server, await signUp(server.url));
    const chat = await groupOf(one);
    // The bytes of 30,000 characters cost 8.
    const sends = await callsUntilRefused(() => say(one, chat, "x".repeat(30_000)));
    expect(sends).toBeLessThan(4);
  });

  test("includes those who receive what a call announces, whatever the call", async () => {
    await using server = await startServer({ ...budget(300), ...serviceKeySetting() });
    const service = new Backend(server.url);
    const users = Array.from({ length: 499 }, (_, n) => ({ external_id: `user ${n}` }));
    const { items } = await service.call("upsertUsers", { users });
    const members = items.map(({ account }) => account.username);
    const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
    // Calls of service keys are not limited by their cost.
    const groupWith = async ({ username }: Person) => {
      const input = { usernames: members, kind: "group" } as const;
      return (await service.as(username).call("startChat", input)).id;
    };
    const ofAlice = await groupWith(alice);
    const agent = { chat_id: ofAlice, agent_username: agentOf(alice) };
    const one = atOneNode(server, alice);
    await one.call("addGroupAgent", agent);
    let always_on = false;
    const modes = await callsUntilRefused(() => {
      always_on = !always_on;
      return one.call("setGroupAgentMode", { ...agent, always_on });
    });
    // A call that everybody receives costs 11 or more, and the group agent was announced too.
    expect(modes).toBeWithin(10, 28);
    await groupWith(bob);
    let names = 0;
    const other = atOneNode(server, bob);
    const renames = await callsUntilRefused(() =>
      other.call("updateMe", { display_name: `Bob ${++names}` }),
    );
    expect(renames).toBeWithin(10, 30);
    const chat_id = await groupWith(carol);
    const { url } = await carol.call("createIncomingHook", { chat_id, name: "hook" });
    const body = JSON.stringify({ text: "hello" });
    let posts = 0;
    while ((await fetch(url, { method: "POST", body })).ok) posts++;
    expect(posts).toBeWithin(10, 22);
  });

  test("includes the people whom a call adds", async () => {
    await using server = await startServer(budget(20));
    const [alice, bob, carol, dave] = await people(server.url, "alice", "bob", "carol", "dave");
    const one = atOneNode(server, alice);
    const calls = await callsUntilRefused(() => groupOf(one, bob, carol, dave));
    expect(calls).toBeWithin(1, 3);
  });

  test("includes the requests of programs that post to a hook, for all hooks of a person", async () => {
    await using server = await startServer(budget(200));
    const alice = await signUp(server.url);
    const urls: string[] = [];
    for (const name of ["one", "two"]) {
      const chat = await groupOf(alice);
      urls.push((await alice.call("createIncomingHook", { chat_id: chat.id, name })).url);
    }
    const body = JSON.stringify({ text: "*\n".repeat(19_000) });
    const statuses: number[] = [];
    for (const url of [...urls, ...urls, ...urls]) {
      statuses.push((await fetch(url, { method: "POST", body })).status);
    }
    expect(statuses[0]).toBe(200);
    expect(statuses.at(-1)).toBe(429);
    await alice.call("getMe");
  });

  test("includes the bytes of calls before sign-in, for each address", async () => {
    await using server = await startServer(budget(20));
    const input = { username: "nobody", password: "x".repeat(160_000) };
    const [node = ""] = nodesOf(server.url);
    const statuses: number[] = [];
    for (let n = 0; n < 4; n++) statuses.push((await post(node, "signIn", input)).status);
    expect(statuses).toEqual([400, 429, 429, 429]);
  });

  test("is not limited where the rates of calls are lifted", async () => {
    await using server = await startServer(limits({ operations_per_second: 0, cost_burst: 10 }));
    const alice = await signUp(server.url);
    for (let n = 0; n < 30; n++) await alice.call("getChats");
  });
});

describe.concurrent("a frame", () => {
  test("that is malformed counts as a call", async () => {
    await using server = await startServer(
      limits({ operations_per_second: 1, operation_burst: 5 }),
    );
    await using socket = await RawSocket.connect(await signUp(server.url));
    for (let n = 0; n < 30; n++) socket.send("{");
    await socket.until(() => socket.texts.length > 30, "the replies");
    const codes = socket.texts.slice(1).map((text) => JSON.parse(text).error.code as string);
    expect(codes.slice(0, 5)).toEqual(Array.from({ length: 5 }, () => "bad_request"));
    expect(codes.at(-1)).toBe("rate_limited");
  });

  test("with an unknown method counts as a call", async () => {
    const rates = { operations_per_second: 1, operation_burst: 5 };
    await using server = await startServer(limits(rates));
    await using socket = await RawSocket.connect(await signUp(server.url));
    for (let n = 0; n < 30; n++) socket.send(JSON.stringify({ method: "no.such" }));
    await socket.until(() => socket.texts.length > 30, "the replies");
    const codes = socket.texts.slice(1).map((text) => JSON.parse(text).error.code as string);
    expect(codes.slice(0, 5)).toEqual(Array.from({ length: 5 }, () => "not_found"));
    expect(codes.at(-1)).toBe("rate_limited");
  });

  test("of many bytes is read later if the account owes for earlier ones", async () => {
    const rates = { cost_per_second: 20, cost_burst: 20, operations_per_second: 100 };
    await using server = await startServer(limits(rates));
    await using socket = await RawSocket.connect(await signUp(server.url));
    // 30 each: the second one is read before the first is paid for, the third after a second.
    for (let n = 0; n < 4; n++) socket.send(`{"method":1,"params":"${"x".repeat(122_880)}"}`);
    await socket.until(() => socket.texts.length > 4, "all replies");
    const codes = socket.texts.slice(1).map((text) => JSON.parse(text).error.code as string);
    expect(codes).toEqual(Array.from({ length: 4 }, () => "bad_request"));
  });
});

describe.concurrent("strangers_per_hour", () => {
  test("limits how many groups an account adds people to who do not know it", async () => {
    await using server = await startServer(limits({ strangers_per_hour: 4 }));
    const [mallory, alice, bob] = await people(server.url, "mallory", "alice", "bob");
    const one = atOneNode(server, mallory);
    const chat = await groupOf(one, bob);
    expect(await callsUntilRefused(() => groupOf(one, alice))).toBe(3);
    const usernames = [alice.username];
    const added = await failure(one.call("addChatMembers", { chat_id: chat.id, usernames }));
    expect(added.code).toBe("rate_limited");
    expect((await alice.call("getChats")).items).toHaveLength(3);
    await one.call("startChat", { usernames });
  });

  test("does not count people who have written to the account, nor its agents", async () => {
    await using server = await startServer(limits({ strangers_per_hour: 1 }));
    const [alice, bob] = await people(server.url, "alice", "bob");
    const one = atOneNode(server, alice);
    await say(bob, await groupOf(one, bob), "hello");
    const agent = { username: `${alice.username}:claude` };
    for (let n = 0; n < 3; n++) await groupOf(one, bob, agent);
  });
});

test("only the first mentions_per_message handles of a message mention somebody", async () => {
  await using server = await startServer(limits({ mentions_per_message: 2 }));
  const [alice, bob, carol, dave] = await people(server.url, "alice", "bob", "carol", "dave");
  const chat = await groupOf(alice, bob, carol, dave);
  const handles = [bob, bob, carol, dave].map(({ username }) => `@${username}`);
  const sent = await say(alice, chat, handles.join(" "));
  expect(sent.mentions).toEqual([bob.username, carol.username]);
  const content = handles.toReversed().join(" ");
  const edited = await alice.call("editMessage", { message_id: sent.id, content });
  expect(edited.mentions).toEqual([dave.username, carol.username]);
});

test("the results of the calls in one body to /mcp are bounded together", async () => {
  await using server = await startServer(
    limits({ operations_per_second: 0, messages_per_second: 0, page_bytes: 65_536 }),
  );
  const alice = await signUp(server.url);
  const chat = await groupOf(alice);
  await say(alice, chat, "x".repeat(30_000));
  const call = (id: number) => ({
    jsonrpc: "2.0",
    id,
    method: "tools/call",
    params: { name: "get_chat_history", arguments: { chat_id: chat.id } },
  });
  const response = await fetch(`${alice.url}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${alice.token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify(Array.from({ length: 16 }, (_, id) => call(id))),
  });
  const text = await response.text();
  expect(text.length).toBeLessThan(400_000);
  expect(text).toContain("the results of one body have more than 65536 bytes");
  expect(text.match(/"isError":true/g)?.length).toBeGreaterThan(12);
});

test("answers over HTTP that nobody reads are dropped at backlog_total_bytes, and others are served", async () => {
  await using server = await startServer(
    limits({
      messages_per_second: 0,
      operations_per_second: 0,
      page_size: 1000,
      page_bytes: 16_777_216,
      backlog_total_bytes: 8_388_608,
    }),
  );
  const [alice, bob] = await people(server.url, "alice", "bob");
  const chat = await groupOf(alice, bob);
  const sent: Promise<Message>[] = [];
  for (let n = 0; n < 240; n++) sent.push(say(alice, chat, '"'.repeat(32_768)));
  await Promise.all(sent);
  const node = new URL(nodesOf(server.url)[0] as string);
  const body = JSON.stringify({ chat_id: chat.id, limit: 1000 });
  let closed = 0;
  const sockets = Array.from({ length: 3 }, () => {
    const socket = connect(Number(node.port), node.hostname);
    socket.pause();
    socket.on("error", () => {});
    socket.on("close", () => closed++);
    socket.write(
      `POST /api/getChatHistory HTTP/1.1\r\nhost: ${node.host}\r\nauthorization: Bearer ${alice.token}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    return socket;
  });
  await server.printed(/backlog_total_bytes exceeded/);
  const others = await bob.at(node.origin).call("getChatHistory", { chat_id: chat.id, limit: 3 });
  expect(others.items).toHaveLength(3);
  let received = 0;
  for (const socket of sockets) {
    socket.on("data", (data) => {
      received += data.length;
    });
    socket.resume();
  }
  await until(() => closed > 0, "a connection is closed");
  expect(received).toBeLessThan(3 * 15_000_000);
  for (const socket of sockets) socket.destroy();
});
