import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { type OperationName, operations, type SocketFailure } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  answer,
  groupOf,
  post,
  RawSocket,
  say,
  signUp,
  type Transport,
  transports,
} from "@parley/testkit/client.ts";
import { externalAgent } from "@parley/testkit/external-agents.ts";
import { operatorAt } from "@parley/testkit/operators.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import fc from "fast-check";

/** Alice is an operator, so that she can call all operations but those of service keys and agents. */
const server = await startServer({
  ...noRates,
  ...serviceKeySetting(),
  PARLEY_OPERATORS: "alice",
});
const backend = new Backend(server.url);
const [alice, bob] = [await operatorAt(server, "alice"), await signUp(server.url, "bob")];
const chat = await groupOf(alice, bob);
const message = await say(alice, chat, "hello");
const socket = await alice.connect();
const { agent } = await externalAgent(bob);
const agentSocket = await agent.connect();
afterAll(() => server[Symbol.asyncDispose]());

/** After any input, the server has logged no internal error and the same socket still answers. */
afterEach(async () => {
  expect(server.output()).not.toMatch(/internal error|request failed/);
  expect(await socket.call("getMe")).toMatchObject({ username: alice.username });
});

/** All operations but those that end the session that the other tests need. */
const names = (Object.keys(operations) as OperationName[]).filter(
  (name) => name !== "signOut" && name !== "revokeTokens",
);
const accessOf = (name: string) => operations[name as OperationName].access;
/** The token of a caller who may call the operation. */
function tokenFor(name: string): string {
  if (accessOf(name) === "agent") return agent.token;
  return accessOf(name) === "service" ? backend.key : alice.token;
}

const fieldsOf = (name: OperationName) =>
  Object.keys((operations[name].input as unknown as { shape: object }).shape).filter(
    // With any valid value of these, alice would not have what the other tests need any more.
    (field) =>
      !((name === "leaveChat" && field === "final") || (name === "clearChat" && field === "erase")),
  );

/** Whether a field is optional and null has no meaning of its own. */
function isOmittable(name: OperationName, field: string): boolean {
  const { shape } = operations[name].input as unknown as {
    shape: Record<string, { safeParse(value: unknown): { success: boolean } }>;
  };
  const takes = (value: unknown) => shape[field]?.safeParse(value).success === true;
  return takes(undefined) && !takes(null);
}

/** Valid values of known fields; the username is taken. */
const valid: Record<string, unknown> = {
  chat_id: chat.id,
  message_id: message.id,
  message_ids: [message.id],
  username: alice.username,
  usernames: [bob.username],
  password: "correct horse battery",
  display_name: "Alice",
  content: "hello",
  query: "hello",
  emoji: "👍",
  seq: 1,
  since_seq: 0,
  title: "Title",
  action: "typing",
  session_id: Bun.randomUUIDv7(),
};

/** Values as JSON text, which can express more than JavaScript values. */
const hostile = [
  ..."null true false 0 -0 -1 1.5 1e999 -1e999 9007199254740993 [] {} [[]] [null] [{}]".split(" "),
  ...['""', '" "', '"0"', '"null"', '"not-a-uuid"', '"00000000-0000-0000-0000-000000000000"'],
  ...['"\\ud800"', '"\\udc00\\ud800"', '"a\\u0000b"', '"\\u0000"', '"\\uffff\\ufffe"', '"\\u202e"'],
  ...[`"' OR 1=1 --"`, '"%"', '"\\\\"', '"\\r\\nx: y"', '"../../etc/passwd"', '"<script>"'],
  ...['{"__proto__": {"polluted": true}}', '{"constructor": {"prototype": {"polluted": true}}}'],
  ...['["\\ud800"]', '["a\\u0000b"]', '{"\\ud800": 1}', '{"__proto__": 5}', '{"length": 1e9}'],
  `"${"x".repeat(200_000)}"`,
  `"${"🙂".repeat(40_000)}"`,
  `[${Array.from({ length: 5000 }, () => '"x"').join()}]`,
  "[".repeat(20_000) + "]".repeat(20_000),
  '{"a":'.repeat(20_000) + 1 + "}".repeat(20_000),
];

interface Failed {
  code: string;
  parameters?: { fields?: Record<string, string> };
}

let calls = 0;

/** Calls with an input given as JSON text. Returns the failure, or null on success. */
const callers: Record<Transport, (name: string, input: string) => Promise<Failed | null>> = {
  HTTP: async (name, input) => {
    const response = await fetch(`${server.url}/api/${name}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${tokenFor(name)}`,
      },
      body: input,
    });
    const { body } = await answer(response);
    return body.ok ? null : body;
  },
  "the socket": async (name, input) => {
    const id = `bad${++calls}`;
    const { socket: method } = operations[name as OperationName];
    const open = accessOf(name) === "agent" ? agentSocket : socket;
    open.send(`{"method": "${method}", "id": "${id}", "params": ${input}}`);
    const found = () => open.replies.findIndex((reply) => reply.id === id);
    await open.until(() => found() !== -1 || open.closed, `the reply to ${name}`);
    const [reply] = open.replies.splice(found(), 1);
    if (!reply) throw new Error(`the socket closed with ${open.closed?.code}`);
    return reply.ok ? null : (reply as SocketFailure).error;
  },
};

/** The same; a search that reaches its deadline, as it may on a busy machine, is made again. */
const callerOver = (transport: Transport) => async (name: string, input: string) => {
  let failed = await callers[transport](name, input);
  while (name === "searchMessages" && failed?.code === "unavailable") {
    failed = await callers[transport](name, input);
  }
  return failed;
};

const spelled = (field: string, transport: Transport) =>
  field === "chat_id" && transport === "the socket" ? "conversation_id" : field;

/** A valid input with one field replaced, as JSON text. */
function spoiled(name: OperationName, field: string, value: string, transport: Transport): string {
  const entries = fieldsOf(name)
    .filter((each) => each !== field && valid[each] !== undefined)
    .map((each) => [each, JSON.stringify(valid[each])]);
  return `{${[...entries, [field, value]]
    .map(([key, text]) => `${JSON.stringify(spelled(key as string, transport))}: ${text}`)
    .join()}}`;
}

/** An invalid input is a `bad_request` that names the wrong field, if there is one. */
function expectHonest(failed: Failed | null, name: OperationName, transport: Transport): void {
  if (!failed) return;
  expect(failed.code).not.toBe("internal");
  expect(failed.code).not.toBe("unavailable");
  if (failed.code !== "bad_request") return;
  const named = Object.keys(failed.parameters?.fields ?? {}).map((path) => path.split(".")[0]);
  expect(named).not.toBeEmpty();
  const known = fieldsOf(name).map((field) => spelled(field, transport));
  expect(known).toEqual(expect.arrayContaining(named));
}

/** Whether a wrong password is `forbidden` or `rate_limited` depends on the time since the last one. */
const outcome = (failed: Failed | null) => [
  failed?.code === "rate_limited" ? "forbidden" : failed?.code,
  failed?.parameters?.fields,
];

/** Everything of Alice's that a call could have changed. */
const snapshot = async () =>
  Promise.all([
    alice.call("getMe"),
    alice.call("getUpdates", { known: {} }),
    alice.call("getChat", { chat_id: chat.id }),
    alice.call("getMessage", { message_id: message.id }),
    // They are listed by their last use, which every call can change.
    alice.call("getSessions").then(({ items }) => items.map(({ id }) => id).toSorted()),
  ]);

describe.each(transports)("over %s", (transport) => {
  const call = callerOver(transport);

  const callable = names.filter((name) => transport === "HTTP" || accessOf(name) !== "service");

  describe.each(callable)("%s", (name) => {
    const fields = fieldsOf(name);

    test("answers every hostile value of every field with success or a failure of the contract", async () => {
      for (const field of fields) {
        for (const value of hostile) {
          const failed = await call(name, spoiled(name, field, value, transport));
          expectHonest(failed, name, transport);
        }
      }
    });

    const omittable = fields.filter((field) => isOmittable(name, field));
    const testIfAny = omittable.length > 0 ? test : () => {};
    testIfAny("takes null for an optional field as leaving it out", async () => {
      const input = (names: string[]) =>
        `{${names
          .map((field) => [spelled(field, transport), valid[field] ?? null])
          .map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`)
          .join()}}`;
      const given = fields.filter((field) => valid[field] !== undefined);
      const without = await call(name, input(given));
      const nulls = await call(name, input([...given, ...omittable]));
      expect(outcome(nulls)).toEqual(outcome(without));
      for (const field of omittable) {
        const failed = await call(name, spoiled(name, field, "null", transport));
        const missing = await call(name, input(given.filter((each) => each !== field)));
        expect(failed?.parameters?.fields).toEqual(missing?.parameters?.fields);
      }
    });

    test("refuses an input that is not an object", async () => {
      // On sockets null is the same as missing params.
      const others = transport === "HTTP" ? ["null", "[]"] : ["[]"];
      for (const value of [
        ...others,
        "5",
        "true",
        '"text"',
        '"\\ud800"',
        "[[]]",
        '[{"chat_id": 1}]',
      ]) {
        expect((await call(name, value))?.code ?? "ok").toBe("bad_request");
      }
    });

    test("changes everything or nothing for any input", () => {
      const field = fc.constantFrom(...(fields.length > 0 ? fields : ["none"]));
      const value = fc.oneof(
        fc.json({ stringUnit: "binary" }),
        fc.string({ unit: "binary" }).map((text) => JSON.stringify(text)),
        fc.constantFrom(...hostile),
      );
      const ten = fc.array(fc.tuple(field, value), { minLength: 10, maxLength: 10 });
      return fc.assert(
        fc.asyncProperty(ten, async (chosen) => {
          let refused = chosen.map(([each, text]) => spoiled(name, each, text, transport));
          // Without the inputs that have changed something, the others are tried again.
          for (let tried: string[] = []; tried.length !== refused.length; ) {
            tried = refused;
            refused = [];
            const before = await snapshot();
            for (const input of tried) {
              const failed = await call(name, input);
              expectHonest(failed, name, transport);
              if (failed) refused.push(input);
            }
            if (refused.length === tried.length) expect(await snapshot()).toEqual(before);
          }
        }),
        { numRuns: 1 },
      );
    });
  });

  test("every operation answers an object with arbitrary keys", () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...callable),
        fc.object({ key: fc.constantFrom("__proto__", "chat_id", "toString", "", "\ud800") }),
        async (name, input) => {
          expectHonest(await call(name, JSON.stringify(input)), name, transport);
        },
      ),
      { numRuns: 200 },
    ));
});

describe("over HTTP", () => {
  test("a body of arbitrary bytes gets a success or a client error", () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...names),
        fc.uint8Array({ minLength: 1, maxLength: 64 }),
        async (name, bytes) => {
          const response = await fetch(`${server.url}/api/${name}`, {
            method: "POST",
            headers: { "content-type": "application/json", authorization: `Bearer ${alice.token}` },
            body: bytes as Uint8Array<ArrayBuffer>,
          });
          expect((await answer(response)).status).toBeOneOf([200, 400, 401, 403, 404, 409, 429]);
        },
      ),
      { numRuns: 200 },
    ));

  test("an arbitrary operation name is not found", () =>
    fc.assert(
      fc.asyncProperty(
        fc.string({ unit: "binary", minLength: 1, maxLength: 300 }),
        async (name) => {
          const path = encodeURIComponent(name.toWellFormed());
          expect((await post(server.url, path, {}, alice.token)).status).toBeOneOf([404, 405]);
        },
      ),
      { numRuns: 100 },
    ));

  test("an arbitrary token is unauthorized, for calls and at the upgrade", () =>
    fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary-ascii" }), async (token) => {
        const encoded = encodeURIComponent(token);
        const upgrade = await fetch(`${server.url}/api/ws?token=${encoded}`);
        expect((await answer(upgrade)).status).toBe(401);
        expect((await post(server.url, "getMe", {}, encoded)).status).toBe(401);
      }),
      { numRuns: 50 },
    ));

  test("a query with an invalid encoding gets an answer", async () => {
    for (const query of ["?token=%", "?token=%ff%fe", "?token=%00", "?%", "?token=a&token=b"]) {
      await using raw = await RawSocket.open(server.url, `/api/ws${query}`);
      expect(raw.answer?.status).toBe(401);
    }
  });
});

describe("over the socket", () => {
  /** Sends frames on a new socket and expects one reply to each, in order. */
  async function expectReplies(frames: (string | Uint8Array)[]) {
    await using own = await alice.connect();
    for (const frame of frames) own.socket.send(frame as string);
    await own.until(() => own.replies.length >= frames.length || own.closed, "a reply to each");
    expect(own.closed).toBeNull();
    for (const reply of own.replies) {
      if (!reply.ok) expect(reply.error.code).not.toBeOneOf(["internal", "unavailable"]);
    }
    expect(await own.call("getMe")).toMatchObject({ username: alice.username });
    expect(own.replies).toHaveLength(frames.length + 1);
  }

  test("arbitrary text gets a reply to each frame, and the socket stays open", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.string({ unit: "grapheme" }), fc.json()), {
          minLength: 1,
          maxLength: 20,
        }),
        expectReplies,
      ),
      { numRuns: 20 },
    ));

  test("arbitrary frames get a reply to each, and the socket stays open", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc
            .record(
              {
                method: fc.oneof(
                  fc.constantFrom<string>(...names),
                  fc.string({ unit: "binary" }),
                  fc.jsonValue(),
                ),
                params: fc.jsonValue(),
                id: fc.jsonValue(),
              },
              { requiredKeys: [] },
            )
            .map((frame) => JSON.stringify(frame)),
          { minLength: 1, maxLength: 20 },
        ),
        expectReplies,
      ),
      { numRuns: 20 },
    ));

  test("binary frames get a reply to each, and the socket stays open", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 64 }), { minLength: 1, maxLength: 10 }),
        expectReplies,
      ),
      { numRuns: 10 },
    ));

  test("deep, wide and huge frames get a reply, and the socket stays open", () =>
    expectReplies([
      "[".repeat(100_000),
      "[".repeat(100_000) + "]".repeat(100_000),
      `{"method": "getMe", "params": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
      `{"method": "${"x".repeat(200_000)}"}`,
      `{"method": "getMe", "id": "${"x".repeat(200_000)}"}`,
      `{${Array.from({ length: 10_000 }, (_, n) => `"k${n}": ${n}`).join()}}`,
      '{"__proto__": {"method": "getMe"}}',
      '{"method": "getMe", "__proto__": null, "constructor": 1}',
    ]));

  test("bytes that are not UTF-8 or not frames do not affect other clients", () =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 64 }), async (bytes) => {
        await using text = await RawSocket.connect(alice);
        text.send(Buffer.concat([Buffer.from([0xff, 0xc3]), bytes]));
        await text.until(() => text.closed || text.texts.length > 1, "a reply or a close");
        await using raw = await RawSocket.connect(alice);
        raw.tcp.end(bytes);
        await raw.until(() => raw.closed, "close");
        expect(await socket.call("getMe")).toMatchObject({ username: alice.username });
      }),
      { numRuns: 10 },
    ));
});

test("no input has changed the prototypes of the server", async () => {
  const { body } = await post(server.url, "getMe", {}, alice.token);
  expect(JSON.stringify(body)).not.toContain("polluted");
  const response = await fetch(`${server.url}/api/limits`);
  expect(await response.text()).not.toContain("polluted");
});
