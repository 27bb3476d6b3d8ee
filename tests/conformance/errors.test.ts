import { describe, expect, test } from "bun:test";
import { type HttpFailure, operations } from "@parley/protocol";
import { answer, failure, groupOf, people, post, say } from "@parley/testkit/client.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const [alice] = await people(server.url, "alice");
const MAX_BODY = 262_144;
const names = Object.keys(operations);
/** What public operations answer to an empty input. */
const publicAnswers: Record<string, number> = {
  signUp: 400,
  signIn: 400,
  getSignInMethods: 200,
  // No issuer is configured.
  startOidcSignIn: 404,
  finishOidcSignIn: 400,
  getPasswordReset: 400,
  resetPassword: 400,
};
const isPublic = (name: string) => name in publicAnswers;

/** A POST with exactly these headers and bytes. */
const send = async (
  operation: string,
  body?: BodyInit | ReadableStream,
  headers: Record<string, string> = { "content-type": "application/json" },
) => {
  const response = await fetch(`${server.url}/api/${operation}`, {
    method: "POST",
    headers: { authorization: `Bearer ${alice.token}`, ...headers },
    ...(body !== undefined && { body }),
  });
  return answer(response);
};

const streamed = (...chunks: string[]) =>
  new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
      controller.close();
    },
  });

describe("success", () => {
  test("is 200 with ok and the result, in JSON", async () => {
    const { status, headers, body } = await post(server.url, "getMe", {}, alice.token);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toStartWith("application/json");
    expect(body).toEqual({ ok: true, result: { ...alice.account, presence: "visible" } });
  });

  test("is 200 with only ok if there is no result", async () => {
    const { id } = await groupOf(alice);
    const input = { chat_id: id, action: "typing" };
    const { status, body } = await post(server.url, "sendChatAction", input, alice.token);
    expect({ status, body }).toEqual({ status: 200, body: { ok: true } });
  });
});

describe("failure", () => {
  test("has the status, the code and a description", async () => {
    const input = { message_id: Bun.randomUUIDv7() };
    const { status, body } = await post(server.url, "getMessage", input, alice.token);
    expect(status).toBe(404);
    expect(body).toEqual({
      ok: false,
      error_code: 404,
      code: "not_found",
      description: "not found: message",
    });
  });

  test("of validation names every wrong field", async () => {
    const input = { chat_id: 5, content: "", client_msg_id: [], unknown: "ignored" };
    const { body } = await post(server.url, "sendMessage", input, alice.token);
    expect(body).toEqual({
      ok: false,
      error_code: 400,
      code: "bad_request",
      description: expect.stringContaining("chat_id"),
      parameters: {
        fields: {
          chat_id: expect.any(String),
          content: expect.any(String),
          client_msg_id: expect.any(String),
        },
      },
    });
  });

  test("of validation names a missing field, and a wrong one inside a list", async () => {
    const missing = await post(server.url, "getMessage", {}, alice.token);
    expect(missing.body).toMatchObject({ parameters: { fields: { message_id: "is required" } } });
    const input = { chat_id: Bun.randomUUIDv7(), message_ids: [Bun.randomUUIDv7(), "no uuid"] };
    const inside = await post(server.url, "deleteMessages", input, alice.token);
    expect(inside.body).toMatchObject({
      parameters: { fields: { "message_ids.1": expect.any(String) } },
    });
  });

  test("of validation names at most 20 wrong fields", async () => {
    const known = Object.fromEntries(Array.from({ length: 5000 }, (_, name) => [`x${name}`, 1]));
    const { status, body } = await post(server.url, "getUpdates", { known }, alice.token);
    expect(status).toBe(400);
    const { fields = {} } = (body as HttpFailure).parameters ?? {};
    expect(Object.keys(fields)).toHaveLength(20);
    expect(JSON.stringify(body).length).toBeLessThan(10_000);
  });

  test("of validation describes valid values", async () => {
    const id = Bun.randomUUIDv7();
    const description = async (operation: string, input: object) =>
      Reflect.get((await post(server.url, operation, input, alice.token)).body, "description");
    expect(await description("setAgentKey", { provider: "claude", api_key: "" })).toBe(
      "bad request: api_key must not be empty",
    );
    expect(await description("setAgentKey", { provider: "gpt", api_key: "x".repeat(1025) })).toBe(
      "bad request: api_key must have at most 1024 characters",
    );
    expect(await description("deleteMessages", { chat_id: id, message_ids: [] })).toBe(
      "bad request: message_ids must not be empty",
    );
    expect(await description("getUsers", { limit: 0 })).toBe(
      "bad request: limit must be at least 1",
    );
    expect(await description("getChatHistory", { chat_id: id, after: id, around: id })).toBe(
      "bad request: around cannot be given together with after",
    );
  });

  test("has its own request id, as success has", async () => {
    const answers = [
      await post(server.url, "getMe", {}, alice.token),
      await post(server.url, "getMe", {}, alice.token),
      await post(server.url, "getMe"),
      await post(server.url, "getUser", {}, alice.token),
      await post(server.url, "nothing"),
    ];
    const ids = answers.map(({ headers }) => headers.get("x-request-id"));
    expect(ids.every((id) => id !== null && id.length >= 16)).toBe(true);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe("unknown fields", () => {
  test("are ignored, whatever their value", async () => {
    const chat = await groupOf(alice);
    const input = { chat_id: chat.id, content: "hello", sender: "bob", seq: { a: [null] } };
    const { body } = await post(server.url, "sendMessage", input, alice.token);
    expect(body).toMatchObject({ ok: true, result: { sender: alice.account, seq: chat.seq + 1 } });
  });
});

describe("a body", () => {
  test("that is missing is an empty object", async () => {
    expect((await send("getMe", undefined, {})).status).toBe(200);
    expect((await send("getMe", "")).status).toBe(200);
    expect((await send("getMe", "  \n")).status).toBe(200);
    const { body } = await send("getUser", undefined, {});
    expect(body).toMatchObject({ parameters: { fields: { username: "is required" } } });
  });

  test("that arrives in chunks is read completely", async () => {
    const { body } = await send("getUser", streamed('{"user', `name": "${alice.username}"`, "}"));
    expect(body).toEqual({ ok: true, result: alice.account });
  });

  test.each(["application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"])(
    "is JSON by the content type %j",
    async (type) => {
      expect((await send("getMe", "{}", { "content-type": type })).status).toBe(200);
    },
  );

  test.each(["text/plain", "application/x-www-form-urlencoded", "application/jsonx", "text/json"])(
    "of content type %j is 415",
    async (type) => {
      const { status, body } = await send("getMe", "{}", { "content-type": type });
      expect(status).toBe(415);
      expect(body).toMatchObject({ code: "unsupported_media_type" });
    },
  );

  test("without a content type is 415", async () => {
    expect((await send("getMe", Buffer.from("{}"), {})).status).toBe(415);
  });

  test.each([
    ["no JSON", "hello"],
    ["cut off", '{"username": "alice"'],
    ["an array", "[]"],
    ["null", "null"],
    ["a number", "5"],
    ["a string", '"text"'],
  ])("that is %s is 400", async (_, body) => {
    const { status, body: failed } = await send("getMe", body);
    expect(status).toBe(400);
    expect(failed).toMatchObject({ code: "bad_request" });
  });

  test("that is not UTF-8 is 400", async () => {
    const bytes = Buffer.concat([
      Buffer.from('{"username": "'),
      Buffer.from([0xff, 0xc3, 0x28]),
      Buffer.from('"}'),
    ]);
    expect((await send("getUser", bytes)).status).toBe(400);
  });

  test("of 256 KiB is accepted, and one byte more is 413", async () => {
    const padded = (length: number) => {
      const frame = JSON.stringify({ username: alice.username, padding: "" });
      return frame.replace('""', `"${"x".repeat(length - frame.length)}"`);
    };
    expect((await send("getUser", padded(MAX_BODY))).status).toBe(200);
    const { status, body } = await send("getUser", padded(MAX_BODY + 1));
    expect(status).toBe(413);
    expect(body).toMatchObject({ code: "payload_too_large" });
  });

  test("without a length that exceeds 256 KiB is 413", async () => {
    const chunks = Array.from({ length: 5 }, () => "x".repeat(MAX_BODY / 4));
    expect((await send("getMe", streamed('{"padding": "', ...chunks, '"}'))).status).toBe(413);
  });
});

describe("an operation", () => {
  test.each(["GET", "PUT", "DELETE", "PATCH"])(
    "is 405 with %s, and names the allowed method",
    async (method) => {
      const response = await fetch(`${server.url}/api/getMe`, {
        method,
        headers: { authorization: `Bearer ${alice.token}` },
      });
      expect(response.headers.get("allow")).toContain("POST");
      const { status, body } = await answer(response);
      expect(status).toBe(405);
      expect(body).toMatchObject({ code: "method_not_allowed" });
    },
  );

  test.each(["nothing", "explode", "constructor", "__proto__", "toString"])(
    "that does not exist is 404: %s",
    async (name) => {
      const { status, body } = await send(name, "{}");
      expect(status).toBe(404);
      expect(body).toMatchObject({ code: "not_found", description: `not found: method ${name}` });
    },
  );

  test.each(names.filter((name) => !isPublic(name)))("needs a token: %s", async (name) => {
    for (const authorization of ["", "Bearer", "Bearer ply_wrong", `Basic ${alice.token}`]) {
      const { status, headers, body } = await send(name, "not even JSON", { authorization });
      expect(status).toBe(401);
      expect(headers.get("www-authenticate")).toBe("Bearer");
      expect(body).toMatchObject({ code: "unauthorized" });
    }
  });

  test.each(Object.entries(publicAnswers))("needs no token: %s", async (name, expected) => {
    const { status } = await post(server.url, name, {});
    expect(status).toBe(expected);
  });

  test("accepts the token whatever the case of the scheme", async () => {
    const { status } = await send("getMe", undefined, { authorization: `bearer ${alice.token}` });
    expect(status).toBe(200);
  });
});

describe("what clients tell apart has a parameter:", () => {
  const parametersOf = async (call: Promise<unknown>) => (await failure(call)).parameters;

  test("a message that cannot be sent names the field that is the cause", async () => {
    const { id: chat_id } = await groupOf(alice);
    const content = "hello";
    const reply_to_id = Bun.randomUUIDv7();
    const toNothing = alice.call("sendMessage", { chat_id, content, reply_to_id });
    expect(await parametersOf(toNothing)).toEqual({ fields: { reply_to_id: expect.any(String) } });
    const input = { chat_id, content, client_msg_id: "again" };
    const { id } = await alice.call("sendMessage", input);
    await alice.call("deleteMessages", { chat_id, message_ids: [id] });
    const again = alice.call("sendMessage", input);
    expect(await parametersOf(again)).toEqual({ fields: { client_msg_id: expect.any(String) } });
    const file_ids = [Bun.randomUUIDv7()];
    const withoutFile = alice.call("sendMessage", { chat_id, content, file_ids });
    expect(await parametersOf(withoutFile)).toEqual({
      fields: { "file_ids.0": expect.any(String) },
    });
  });

  test("a wrong password names its field", async () => {
    const wrong = alice.call("confirmPassword", { password: "not the password" });
    expect(await parametersOf(wrong)).toEqual({ fields: { password: "is wrong" } });
    const passwords = { current_password: "not the password", new_password: "correct horse 2" };
    const change = alice.call("changePassword", passwords);
    expect(await parametersOf(change)).toEqual({ fields: { current_password: "is wrong" } });
  });

  test("accounts that do not exist are named", async () => {
    const usernames = [alice.username, "nobody_at_all", "nobody_else"];
    const names = ["nobody_at_all", "nobody_else"];
    expect(await parametersOf(alice.call("startChat", { usernames }))).toEqual({ names });
  });
});

describe("a page", () => {
  test("that does not exist is 404 in the shape of failures", async () => {
    const { status, body } = await answer(await fetch(`${server.url}/nowhere`));
    expect(status).toBe(404);
    expect(body).toMatchObject({ code: "not_found" });
  });

  test("is 405 with POST", async () => {
    const response = await fetch(`${server.url}/health`, { method: "POST" });
    expect(response.headers.get("allow")).toContain("GET");
    expect((await answer(response)).status).toBe(405);
  });
});

test("the same failure has the same code, message and parameters on both transports", async () => {
  const chat = await groupOf(alice);
  const { id } = await say(alice, chat, "hello");
  await using socket = await alice.connect();
  const calls = [
    ["getMessage", { message_id: Bun.randomUUIDv7() }],
    ["getMessage", { message_id: 5 }],
    ["addReaction", { message_id: id, emoji: "no emoji" }],
    ["getUser", { username: "nobody_at_all" }],
    ["startChat", { usernames: ["nobody_at_all"] }],
    ["signUp", { username: alice.username, password: "correct horse battery" }],
    ["signIn", { username: "nobody_at_all", password: "correct horse battery" }],
  ] as const;
  for (const [name, input] of calls) {
    const { body } = await post(server.url, name, input, alice.token);
    const reply = await socket.reply(name, input);
    if (body.ok || reply.ok) throw new Error(`${name} was meant to fail`);
    const { code, description: message, parameters } = body;
    expect(reply.error).toEqual({ code, message, ...(parameters && { parameters }) });
  }
});
