import { describe, expect, test } from "bun:test";
import { operations } from "@parley/protocol";
import {
  groupOf,
  type Person,
  people,
  post,
  RawSocket,
  say,
  signUp,
  socketUrl,
} from "@parley/testkit/client.ts";
import { externalAgent } from "@parley/testkit/external-agents.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
/** What `getMe` answers alice. */
const me = { ...alice.account, presence: "visible" };
describe("the upgrade", () => {
  const statusOf = async (path: string, headers?: Record<string, string>) => {
    await using socket = await RawSocket.open(server.url, path, headers);
    return socket.answer;
  };

  test("accepts the token as a query parameter and as a bearer token", async () => {
    expect((await statusOf(`/api/ws?token=${alice.token}`))?.status).toBe(101);
    const authorization = `Bearer ${alice.token}`;
    expect((await statusOf("/api/ws", { authorization }))?.status).toBe(101);
  });

  test("accepts the token as a subprotocol, and names only the first one in its answer", async () => {
    const protocol = { "sec-websocket-protocol": `parley, ${alice.token}` };
    expect((await statusOf("/api/ws", protocol))?.status).toBe(101);
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/api/ws`, [
      "parley",
      alice.token,
    ]);
    await new Promise((resolve) => socket.addEventListener("message", resolve, { once: true }));
    expect(socket.protocol).toBe("parley");
    socket.close();
    for (const refused of ["parley", "parley, ply_wrong", `${alice.token}, parley`]) {
      const headers = { "sec-websocket-protocol": refused };
      expect((await statusOf("/api/ws", headers))?.status).toBe(401);
    }
  });

  test.each(["", "?token=", "?token=ply_wrong", "?token=a.b.c", "?token=%00%ff"])(
    "is refused with 401 for %j",
    async (query) => {
      const refused = await statusOf(`/api/ws${query}`);
      expect(refused?.status).toBe(401);
      expect(JSON.parse(refused?.body ?? "")).toEqual({
        ok: false,
        error_code: 401,
        code: "unauthorized",
        description: expect.stringContaining("unauthorized"),
      });
    },
  );

  test("is required: a plain GET is a bad request, and a POST is not allowed", async () => {
    const path = `${server.url}/api/ws?token=${alice.token}`;
    expect((await fetch(path)).status).toBe(400);
    expect((await fetch(path, { method: "POST" })).status).toBe(405);
  });
});

describe("hello", () => {
  test("arrives first, once, with the account, and without at", async () => {
    await using socket = await alice.connect();
    await socket.settled();
    const history_id = expect.stringMatching(/^[0-9a-f-]{36}$/);
    expect(socket.events).toEqual([{ method: "events.hello", params: alice.account, history_id }]);
  });

  test("arrives before the reply to a call that did not wait for it", async () => {
    const socket = new WebSocket(socketUrl(server.url, alice.token));
    const frames: { method?: string; ok?: boolean }[] = [];
    const both = Promise.withResolvers<void>();
    socket.onopen = () => {
      socket.send(Buffer.from("binary"));
      socket.send(JSON.stringify({ method: "getMe" }));
    };
    socket.onmessage = ({ data }) => {
      frames.push(JSON.parse(String(data)));
      if (frames.length === 3) both.resolve();
    };
    await both.promise;
    socket.close();
    expect(frames.map(({ method, ok }) => method ?? ok)).toEqual(["events.hello", false, true]);
  });

  test("arrives first while conversations start and messages arrive", async () => {
    const newcomer = await signUp(server.url, "newcomer");
    let over = false;
    const pour = async () => {
      while (!over) await say(alice, await groupOf(alice, newcomer), "hello");
    };
    const pouring = [pour(), pour(), pour()];
    const sockets = await Promise.all(Array.from({ length: 15 }, () => newcomer.connect()));
    over = true;
    await Promise.all(pouring);
    for (const socket of sockets) {
      await socket.settled();
      expect(socket.events[0]?.method).toBe("events.hello");
      expect(socket.eventsNamed("events.hello")).toHaveLength(1);
      await socket.close();
    }
  });

  test("is followed by every later message", async () => {
    const chat = await groupOf(alice, bob);
    let over = false;
    const pouring = (async () => {
      while (!over) await say(alice, chat, "hello");
    })();
    await using socket = await bob.connect();
    const { seq } = await socket.call("getChat", { chat_id: chat.id });
    await say(alice, chat, "one more");
    over = true;
    await pouring;
    const received = (await socket.settledEvents("events.messageNew")).map(
      ({ params }) => params.seq,
    );
    const last = (await bob.call("getChat", { chat_id: chat.id })).seq;
    const first = received[0] ?? last + 1;
    expect(first).toBeLessThanOrEqual(seq + 1);
    expect(received).toEqual(Array.from({ length: last - first + 1 }, (_, index) => first + index));
  });
});

/** The socket names of all operations in the contract. */
const dotted: Record<string, string> = {
  signUp: "auth.register",
  signIn: "auth.login",
  signOut: "auth.logout",
  getSessions: "auth.sessions",
  revokeSession: "auth.revoke",
  getMe: "accounts.me",
  getUser: "accounts.get",
  getUsers: "accounts.list",
  updateMe: "accounts.update",
  startChat: "conversations.create",
  getChats: "conversations.list",
  getChat: "conversations.get",
  setChatTitle: "conversations.rename",
  addChatMembers: "conversations.add_members",
  removeChatMember: "conversations.remove_member",
  leaveChat: "conversations.leave",
  readChat: "conversations.read",
  sendMessage: "messages.send",
  getChatHistory: "messages.history",
  getMessage: "messages.get",
  editMessage: "messages.edit",
  deleteMessages: "messages.delete",
  deleteMessagesForMe: "messages.delete_for_me",
  getUpdates: "sync.updates",
  searchMessages: "messages.search",
  addReaction: "reactions.add",
  removeReaction: "reactions.remove",
  sendChatAction: "typing.set",
  watchPresence: "presence.watch",
  setActivity: "presence.activity",
  getMyAgents: "agents.list",
  createAgent: "agents.create",
  updateAgent: "agents.update",
  deleteAgent: "agents.delete",
  getAgentModels: "agents.models",
  setAgentKey: "agents.set_key",
  removeAgentKey: "agents.remove_key",
  setAgentProfile: "agents.set_profile",
  setAgentLimits: "agents.set_limits",
  stopAgentTurn: "agents.stop",
  retryAgentTurn: "agents.retry",
  getTurn: "agents.turn",
  getAgentUsage: "agents.usage",
  getGroupAgents: "groups.agents",
  addGroupAgent: "groups.add_agent",
  removeGroupAgent: "groups.remove_agent",
  setGroupAgentMode: "groups.set_agent_mode",
  stopChatAgents: "groups.stop_agents",
  sendComponentAction: "components.submit",
};

describe("calls", () => {
  test("find every operation by both of its names", async () => {
    await using socket = await carol.connect();
    const names = Object.values(operations).flatMap(({ name, socket: method }) => [name, method]);
    const expected = Object.entries(dotted).flat();
    expect(names).toEqual(expect.arrayContaining(expected));
    for (const name of names.filter((each) => !["signOut", "auth.logout"].includes(each))) {
      const reply = await socket.reply(name, { unknown: true });
      expect(reply.ok ? "found" : reply.error.message).not.toStartWith("not found: method");
    }
  });

  test("behave the same by both names", async () => {
    const chat = await groupOf(alice);
    await using socket = await alice.connect();
    const params = { conversation_id: chat.id, content: "hello", client_msg_id: "both" };
    const one = await socket.reply("messages.send", params);
    const other = await socket.reply("sendMessage", params);
    expect(one).toMatchObject({ ok: true, result: { content: "hello" } });
    expect(other).toEqual({ ...one, id: other.id as string });
  });

  test("are answered by {ok, result}, or {ok} if there is no result", async () => {
    const chat = await groupOf(alice);
    await using socket = await alice.connect();
    socket.send({ method: "accounts.me", id: 1 });
    socket.send({ method: "typing.set", params: typing(chat.id), id: 2 });
    await socket.until(() => socket.replies.length === 2, "two replies");
    expect(socket.replies).toContainEqual({ ok: true, result: me, id: 1 });
    expect(socket.replies).toContainEqual({ ok: true, id: 2 });
  });

  test("that fail are answered by {ok, error: {code, message}}", async () => {
    await using socket = await alice.connect();
    const reply = await socket.reply("messages.get", { message_id: Bun.randomUUIDv7() });
    expect(reply).toEqual({
      ok: false,
      error: { code: "not_found", message: "not found: message" },
      id: reply.id as string,
    });
  });

  test.each(["text", "", "0", 0, -1, 42, Number.MAX_SAFE_INTEGER])("echo the id %j", async (id) => {
    await using socket = await alice.connect();
    socket.send({ method: "getMe", id });
    await socket.until(() => socket.replies.length > 0, "the reply");
    expect(socket.replies).toEqual([{ ok: true, result: me, id }]);
  });

  test("use conversation_id, also in validation errors", async () => {
    await using socket = await alice.connect();
    for (const params of [{}, { conversation_id: "no uuid" }, { conversation_id: 5 }]) {
      const reply = await socket.reply("conversations.get", params);
      expect(reply).toMatchObject({ ok: false, error: { code: "bad_request" } });
      const fields = reply.ok ? {} : reply.error.parameters?.fields;
      expect(Object.keys(fields ?? {})).toEqual(["conversation_id"]);
    }
  });

  test("of an unknown method are not_found and name it", async () => {
    await using socket = await alice.connect();
    for (const method of ["messages.explode", "", "constructor", "__proto__", "events.hello"]) {
      expect(await socket.reply(method)).toMatchObject({
        ok: false,
        error: { code: "not_found", message: `not found: method ${method}` },
      });
    }
  });

  test("need no params if no field is required", async () => {
    await using socket = await alice.connect();
    expect(await socket.reply("accounts.me")).toMatchObject({ ok: true, result: alice.account });
  });

  test("can sign up and sign in without changing the account of the socket", async () => {
    await using socket = await alice.connect();
    const username = `fresh_${Date.now()}`;
    const password = "correct horse battery";
    await socket.call("signUp", { username, password });
    const { access_token } = await socket.call("signIn", { username, password });
    expect((await post(server.url, "getMe", {}, access_token)).status).toBe(200);
    expect(await socket.call("getMe")).toMatchObject(alice.account);
  });
});

const typing = (conversation_id: string) => ({ conversation_id, action: "typing" });

test("an id of null is the same as no id", async () => {
  await using socket = await alice.connect();
  socket.send({ method: "getMe", params: null, id: null });
  socket.send({ method: "no.such", id: null });
  socket.send({ method: 5, id: null });
  await socket.until(() => socket.replies.length >= 3, "a reply to each");
  expect(socket.replies.map((reply) => (reply.ok ? reply : reply.error.code))).toEqual([
    { ok: true, result: me },
    "not_found",
    "bad_request",
  ]);
});

describe("frames without an id", () => {
  /** The outcomes of the frames in order: a code or "ok". */
  async function answers(person: Person, frames: unknown[]) {
    await using socket = await person.connect();
    for (const frame of frames) socket.send(frame);
    await socket.until(() => socket.replies.length >= frames.length, "a reply to each");
    expect(socket.replies.filter((reply) => "id" in reply)).toEqual([]);
    return socket.replies.map((reply) => (reply.ok ? (reply.result ?? "ok") : reply.error.code));
  }

  test("are answered in the order of the requests, however long each takes", async () => {
    const chat = await groupOf(alice);
    const frames = [
      { method: "auth.login", params: { username: "nobody_at_all", password: "not this one" } },
      { method: "accounts.me" },
      { method: "messages.search", params: { query: "nowhere" } },
      { method: "messages.get", params: { message_id: Bun.randomUUIDv7() } },
      { method: "messages.explode" },
      { method: "typing.set", params: typing(chat.id) },
    ];
    let replies = await answers(alice, frames);
    // A search may reach its deadline on a busy machine.
    while (replies[2] === "unavailable") replies = await answers(alice, frames);
    const found = { items: [], next_cursor: null };
    expect(replies).toEqual(["unauthorized", me, found, "not_found", "not_found", "ok"]);
  });

  test("run side by side: a call does not wait for the reply to the one before", async () => {
    const { agent, chat } = await externalAgent(alice);
    await using socket = await agent.connect();
    socket.send({ method: "turns.claim", params: { wait_seconds: 30 } });
    const content = "while the first call waits";
    socket.send({ method: "messages.send", params: { conversation_id: chat.id, content } });
    await socket.event("events.messageNew", (message) => message.content === content);
    expect(socket.replies).toEqual([]);
    await say(alice, chat, "hello");
    await socket.until(() => socket.replies.length === 2, "both replies");
    expect(socket.replies).toMatchObject([
      { ok: true, result: { conversation_id: chat.id } },
      { ok: true, result: { content } },
    ]);
  });

  test("are answered in order even if some are invalid", async () => {
    const replies = await answers(alice, [
      { method: "auth.login", params: { username: "nobody_at_all", password: "not this one" } },
      "this is not JSON",
      { method: "accounts.me" },
      { params: {} },
    ]);
    expect(replies).toEqual(["unauthorized", "bad_request", me, "bad_request"]);
  });
});

describe("invalid frames", () => {
  test.each([
    ["not JSON", "hello"],
    ["empty", ""],
    ["cut off", '{"method": "getMe"'],
    ["an array", "[]"],
    ["an array of requests", '[{"method": "getMe"}]'],
    ["a number", "5"],
    ["a string", '"getMe"'],
    ["null", "null"],
    ["without a method", '{"params": {}}'],
    ["with a method that is no string", '{"method": 5}'],
    ["with an id that is neither string nor integer", '{"method": "getMe", "id": {}}'],
    ["with an id that is a fraction", '{"method": "getMe", "id": 1.5}'],
  ])("(%s) get bad_request, and the socket stays open", async (_, frame) => {
    await using socket = await alice.connect();
    socket.send(frame);
    await socket.until(() => socket.replies.length > 0, "the reply");
    expect(socket.replies).toMatchObject([{ ok: false, error: { code: "bad_request" } }]);
    expect(await socket.call("getMe")).toMatchObject(alice.account);
  });

  test("that are long and nested far too deeply name the field, as over HTTP", async () => {
    const deep = "[".repeat(20_000) + "]".repeat(20_000);
    const input = `{"chat_id": ${deep}, "content": "]]]", "ignored": [1, ${deep}, "\\"[", ${deep}]}`;
    const error = {
      code: "bad_request",
      parameters: { fields: { chat_id: "must be a string" } },
    };
    const overHttp = await fetch(`${alice.url}/api/sendMessage`, {
      method: "POST",
      headers: { authorization: `Bearer ${alice.token}`, "content-type": "application/json" },
      body: input,
    });
    expect(await overHttp.json()).toMatchObject(error);
    await using socket = await alice.connect();
    socket.send(`{"method": "getMe", "id": 1, "params": ${input}}`);
    socket.send(`{"method": "getMe", "id": 2, "params": ${input}]}`);
    await socket.until(() => socket.replies.length === 2, "both replies");
    expect(socket.replies.find(({ id }) => id === 1)).toMatchObject({ ok: true });
    const other = socket.replies.find(({ id }) => id !== 1);
    expect(other).toMatchObject({ ok: false, error: { code: "bad_request" } });
  });

  test("that are binary get bad_request, and the socket stays open", async () => {
    await using socket = await alice.connect();
    socket.socket.send(Buffer.from('{"method": "getMe"}'));
    await socket.until(() => socket.replies.length > 0, "the reply");
    expect(socket.replies).toMatchObject([{ ok: false, error: { code: "bad_request" } }]);
    expect(await socket.call("getMe")).toMatchObject(alice.account);
  });

  test.each([
    ["a fraction", 1.5],
    ["a boolean", true],
    ["1,025 characters", "a".repeat(1025)],
  ])("whose id is %s are told what an id is", async (_, id) => {
    await using socket = await alice.connect();
    socket.send({ method: "getMe", id });
    await socket.until(() => socket.replies.length > 0, "the reply");
    const message = "bad request: id must be an integer or a string of at most 1024 characters";
    expect(socket.replies).toEqual([{ ok: false, error: { code: "bad_request", message } }]);
  });

  test.each([
    ["short", "mine"],
    ["long", "a".repeat(1024)],
  ])("have their id echoed if they have a %s one", async (_, id) => {
    await using socket = await alice.connect();
    socket.send({ id, params: {} });
    await socket.until(() => socket.replies.length > 0, "the reply");
    expect(socket.replies).toMatchObject([{ ok: false, id }]);
  });

  test.each([[[]], ["text"], [5], [true]])("with params %j get bad_request", async (params) => {
    await using socket = await alice.connect();
    const reply = await socket.reply("getMe", params);
    expect(reply).toMatchObject({ ok: false, error: { code: "bad_request" } });
  });
});

test("each socket of a client receives the events of all its conversations once", async () => {
  const chats = [await groupOf(alice, bob), await groupOf(bob, alice)];
  await using one = await bob.connect();
  await using two = await bob.connect();
  for (const chat of chats) {
    await say(alice, chat, chat.id);
    // Events of different conversations are not ordered on several nodes.
    const isSent = ({ content }: { content: string }) => content === chat.id;
    for (const socket of [one, two]) await socket.event("events.messageNew", isSent);
  }
  for (const socket of [one, two]) {
    const received = await socket.settledEvents("events.messageNew");
    expect(received.map(({ params }) => params.content)).toEqual(chats.map(({ id }) => id));
  }
});

test("many large concurrent replies all arrive", async () => {
  const chat = await groupOf(alice);
  const page = Array.from({ length: 20 }, () => say(alice, chat, "x".repeat(30_000)));
  await Promise.all(page);
  await using socket = await alice.connect();
  const asked = Array.from({ length: 60 }, () =>
    socket.call("getChatHistory", { chat_id: chat.id }),
  );
  for (const { items } of await Promise.all(asked)) expect(items).toHaveLength(20);
});
