import { describe, expect, test } from "bun:test";
import { Backend } from "@parley/testkit/backend.ts";
import { agentOf, groupOf, people, post } from "@parley/testkit/client.ts";
import { limits, startServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const backend = new Backend(server.url);
const [alice, bob] = await people(server.url, "alice", "bob");
const chat = await groupOf(alice, bob);

const call = (operation: string, input: unknown) => post(server.url, operation, input, alice.token);
/** The fields that an answer over HTTP names as ignored. */
const ignored = async (operation: string, input: unknown) =>
  (await call(operation, input)).headers.get("parley-ignored");

describe("a field that the operation does not know", () => {
  const message = { content: "hello", replyTo: "x" };

  test("is named in a header over HTTP, and the call succeeds", async () => {
    const { status, headers } = await call("sendMessage", { ...message, chat_id: chat.id });
    expect(status).toBe(200);
    expect(headers.get("parley-ignored")).toBe("replyTo");
  });

  test("is named in the reply on the socket, and the call succeeds", async () => {
    await using socket = await alice.connect();
    const params = { ...message, conversation_id: chat.id };
    const reply = await socket.reply("messages.send", params);
    expect(reply).toMatchObject({ ok: true, ignored: ["replyTo"] });
  });

  test("is named by its path in the objects of a list", async () => {
    const agent = { agent_username: agentOf(alice), grants: [{ serverId: "x" }, { kind: "y" }] };
    expect(await ignored("setAgentTools", agent)).toBe("grants.0.serverId, grants.1.kind");
    const users = [{ external_id: "ignored", displayName: "Ada", metadata: { plan: "gold" } }];
    const { headers } = await backend.post("upsertUsers", { users });
    expect(headers.get("parley-ignored")).toBe("users.0.displayName");
  });

  test("is not looked for in lists of lists, however deep", async () => {
    const response = await fetch(`${server.url}/api/setAgentTools`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${alice.token}` },
      body: `{"grants":${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
    });
    expect(response.status).toBe(400);
  });

  test("is also named if the call fails", async () => {
    const input = { chat_id: chat.id, text: "hello" };
    const { status, headers } = await call("sendMessage", input);
    expect(status).toBe(400);
    expect(headers.get("parley-ignored")).toBe("text");
    await using socket = await alice.connect();
    const reply = await socket.reply("messages.send", input);
    expect(reply).toMatchObject({ ok: false, ignored: ["text"] });
  });

  test("cannot add a header or make a long one", async () => {
    const names = ["a\r\nset-cookie: b", "é,x", "", "n".repeat(5000), "__proto__"];
    const many = Array.from({ length: 5000 }, (_, at) => [`field_${at}`, null]);
    const input = JSON.stringify(Object.fromEntries([...names.map((name) => [name, 1]), ...many]));
    const response = await fetch(`${server.url}/api/getMe`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${alice.token}` },
      body: input,
    });
    expect(response.status).toBe(200);
    expect(response.headers.get("set-cookie")).toBeNull();
    const header = response.headers.get("parley-ignored") ?? "";
    expect(header).toMatch(/^[\w.?-]+(, [\w.?-]+)*$/);
    expect(header.split(", ")).toHaveLength(20);
    expect(header.length).toBeLessThan(1500);
    expect(header).toStartWith("a??set-cookie??b, ?");
  });

  test("is not reported where every field is known", async () => {
    expect(await ignored("getChat", { chat_id: chat.id })).toBeNull();
    await using socket = await alice.connect();
    for (const params of [{ conversation_id: chat.id }, { chat_id: chat.id }]) {
      expect(await socket.reply("conversations.get", params)).not.toHaveProperty("ignored");
    }
  });
});

describe("a page size", () => {
  test("above the maximum is named as ignored, and the page has the maximum", async () => {
    expect(await ignored("getChats", { limit: 101 })).toBe("limit");
    await using socket = await alice.connect();
    expect(await socket.reply("getChats", { limit: 101 })).toMatchObject({ ignored: ["limit"] });
  });

  test("of the maximum is not named", async () => {
    expect(await ignored("getChats", { limit: 100 })).toBeNull();
  });
});

test("a conversation under its socket name over HTTP is refused with the name to use", async () => {
  const { body } = await call("getChat", { conversation_id: chat.id });
  expect(body).toMatchObject({
    code: "bad_request",
    description:
      "bad request: chat_id is required: over HTTP it has this name, not conversation_id",
  });
});

test.each([
  ["createUpload", { name: "a.txt", size: 1 }],
  ["getUpdates", { since_seq: 0 }],
])("the name to use is also told where %s takes something else instead", async (name, input) => {
  const { body } = await call(name, { ...input, conversation_id: chat.id });
  const hint = expect.stringContaining("over HTTP it has this name, not conversation_id");
  expect(body).toMatchObject({ code: "bad_request", parameters: { fields: { chat_id: hint } } });
});

test("a conversation under its HTTP name is accepted on the socket", async () => {
  await using socket = await alice.connect();
  const reply = await socket.reply("getChat", { chat_id: chat.id });
  expect(reply).toMatchObject({ ok: true, result: { id: chat.id } });
});

describe("an unknown method", () => {
  const suggestions = [
    ["sendMesage", "sendMessage"],
    ["send_message", "sendMessage"],
    ["getme", "getMe"],
    ["messages.send", "sendMessage"],
    ["conversation.list", "getChats"],
  ] as const;

  test.each(suggestions)("over HTTP is refused with a similar name: %s", async (name, similar) => {
    const { body } = await call(name, {});
    const description = `not found: method ${name} (did you mean ${similar}?)`;
    expect(body).toMatchObject({ code: "not_found", description });
  });

  test.each([
    ["message.send", "messages.send"],
    ["sendMesage", "sendMessage"],
  ])("on the socket is refused with a similar name: %s", async (name, similar) => {
    await using socket = await alice.connect();
    const message = `not found: method ${name} (did you mean ${similar}?)`;
    expect(await socket.reply(name)).toMatchObject({ error: { code: "not_found", message } });
  });
});

describe("an answer over HTTP", () => {
  test("says what is left of the rate that the call counts against", async () => {
    await using limited = await startServer(limits({ message_burst: 3, messages_per_second: 1 }));
    const [carol, dave] = await people(limited.url, "carol", "dave");
    const { id: chat_id } = await groupOf(carol, dave);
    const sent = async () => {
      const input = { chat_id, content: "hello" };
      const { status, headers } = await post(limited.url, "sendMessage", input, carol.token);
      const left = /^"messages";r=(\d+);t=[1-3]$/.exec(headers.get("ratelimit") ?? "");
      return { status, policy: headers.get("ratelimit-policy"), left: Number(left?.[1]) };
    };
    const policy = '"messages";q=3;w=3';
    expect(await sent()).toEqual({ status: 200, policy, left: 2 });
    for (;;) {
      const { status, left } = await sent();
      if (status === 200) continue;
      expect({ status, left }).toEqual({ status: 429, left: 0 });
      break;
    }
  });

  test("says nothing about rates that are lifted", async () => {
    const { headers } = await call("getMe", {});
    expect(headers.get("ratelimit")).toBeNull();
    expect(headers.get("ratelimit-policy")).toBeNull();
  });
});
