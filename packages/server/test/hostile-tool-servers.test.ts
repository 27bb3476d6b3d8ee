import { describe, expect, test } from "bun:test";
import { hang } from "@parley/testkit/receiver.ts";
import {
  event,
  eventStream,
  type McpMessage,
  type ReceivedMessage,
  reply,
  ToolServer,
  textResult,
  tool,
} from "@parley/testkit/tool-server.ts";
import { until } from "@parley/testkit/until.ts";
import { createGuardedFetch } from "../src/security/guarded-fetch.ts";
import { startToolServers } from "./support/tool-servers.ts";

/** Calls that hang end soon. Everything else has the time that a slow machine needs. */
const impatient = {
  timeouts: { contactMs: 20_000, refreshMs: 20_000, callMs: 500, elicitMs: 20_000 },
};

type Call = (message: McpMessage, received: ReceivedMessage) => Response | Promise<Response>;

/** A server that answers calls in its own way, and one call of it. */
async function callOf(answer: Call, options: Parameters<typeof startToolServers>[0] = {}) {
  await using tools = await startToolServers(options);
  await using server = new ToolServer();
  const added = await tools.add(server.url);
  server.answer = (received) =>
    received.message.method === "tools/call" ? answer(received.message, received) : undefined;
  const result = await tools.callTool(added, "echo");
  // The next calls are not affected. On a busy machine an impatient one may end too early.
  server.answer = () => undefined;
  const next = () => tools.callTool(added, "echo", { text: "still there" });
  let answered = await next();
  while (options === impatient && Bun.deepEquals(answered, TIMEOUT)) answered = await next();
  expect(answered).toEqual({ text: '{"text":"still there"}', is_error: false });
  return result;
}

const failed = (text: string) => ({ text, is_error: true });
const TIMEOUT = failed("The server did not answer in time.");
const NO_RESULT = failed("The server ended its answer without a result.");
const TOO_LARGE = failed("The request failed: the response exceeds 4194304 bytes.");
const TOO_COMPLEX = failed("The request failed: the response is too complex.");
const INVALID = failed("The server cannot be reached, or its answer is not valid.");

const MEGABYTE = "a".repeat(1024 * 1024);

/** A stream that goes on as long as somebody reads it. */
function endless(first: string, chunk: string, everyMs = 0) {
  let isFirst = true;
  return new ReadableStream<string>({
    async pull(controller) {
      if (everyMs > 0) await Bun.sleep(everyMs);
      controller.enqueue(isFirst ? first : chunk);
      isFirst = false;
    },
  }) as never;
}

const json = (body: BodyInit) =>
  new Response(body, { headers: { "content-type": "application/json" } });

describe("a call ends with a sentence when the server", () => {
  test("does not answer", async () => {
    expect(await callOf(() => hang(), impatient)).toEqual(TIMEOUT);
  });

  test("sends the head of an answer and nothing more", async () => {
    expect(await callOf(() => eventStream(endless("", "", 60_000)), impatient)).toEqual(TIMEOUT);
  });

  test("drips one byte after the other", async () => {
    expect(await callOf(() => json(endless("{", " ", 20)), impatient)).toEqual(TIMEOUT);
    expect(await callOf(() => eventStream(endless(":", "x", 20)), impatient)).toEqual(TIMEOUT);
  });

  test("answers without end", async () => {
    const text = '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"';
    expect(await callOf(() => json(endless(text, MEGABYTE)))).toEqual(TOO_LARGE);
    expect(await callOf(() => eventStream(endless(`data: ${text}`, MEGABYTE)))).toEqual(TOO_LARGE);
  });

  test("sends events without end", async () => {
    const notification = event({ jsonrpc: "2.0", method: "notifications/message", params: {} });
    expect(await callOf(() => eventStream(endless("", notification.repeat(1000))))).toEqual(
      TOO_COMPLEX,
    );
    expect(await callOf(() => eventStream(endless("", ": comment\n\n".repeat(10_000))))).toEqual(
      TOO_LARGE,
    );
  });

  test("sends a great many requests, of which few are answered", async () => {
    let answered = 0;
    const asks = ({ id }: { id: number }) =>
      event({ jsonrpc: "2.0", id: `r${id}`, method: "ping" });
    const requests = Array.from({ length: 5000 }, (_, id) => asks({ id })).join("");
    await using tools = await startToolServers();
    await using server = new ToolServer();
    const added = await tools.add(server.url);
    server.answer = ({ message }) => {
      if (message.method === undefined) answered++;
      return message.method === "tools/call" ? eventStream(endless(requests, "", 1000)) : undefined;
    };
    expect(await tools.callTool(added, "echo")).toEqual(
      failed("The request failed: the server sends too many requests."),
    );
    expect(answered).toBeLessThanOrEqual(256);
    server.answer = () => undefined;
    expect((await tools.callTool(added, "echo")).is_error).toBe(false);
  });

  test("nests its answer deeply", async () => {
    const deep = "[".repeat(100_000);
    expect(await callOf(() => json(deep))).toEqual(TOO_COMPLEX);
    expect(await callOf(() => eventStream(`data: ${deep}\n\n`))).toEqual(TOO_COMPLEX);
  });

  test("sends a great many small values, also after a stray quote", async () => {
    const many = `[${"{},".repeat(300_000)}{}]`;
    expect(await callOf(({ id }) => json(`{"jsonrpc":"2.0","id":${id},"result":${many}}`))).toEqual(
      TOO_COMPLEX,
    );
    expect(await callOf(() => eventStream(`: "\ndata: ${many}\n\n`))).toEqual(TOO_COMPLEX);
  });

  test("sends objects with a great many keys", async () => {
    const keys = Object.fromEntries(Array.from({ length: 20_000 }, (_, key) => [`key ${key}`, 0]));
    const { content } = textResult("hello");
    expect(await callOf(({ id }) => reply(id, { content, ...keys }))).toEqual(TOO_COMPLEX);
    expect(await callOf(({ id }) => reply(id, { content, _meta: keys }))).toEqual(TOO_COMPLEX);
    const list = Object.keys(keys);
    expect(await callOf(({ id }) => reply(id, { content, _meta: { list } }))).toEqual({
      text: "hello",
      is_error: false,
    });
  });

  test("answers with something else than the protocol", async () => {
    for (const body of ["", "nonsense", "null", '{"jsonrpc":"2.0"}']) {
      expect(await callOf(() => json(body))).toEqual(INVALID);
    }
    expect(await callOf(() => json("[]"))).toEqual(NO_RESULT);
    const page = () => new Response("<p>hello", { headers: { "content-type": "text/html" } });
    expect(await callOf(page)).toEqual(INVALID);
    const wrong = ({ id }: McpMessage) => reply(id, { content: "hello" });
    expect(await callOf(wrong)).toEqual(INVALID);
    const riddle = ({ id }: McpMessage) => reply(id, { content: [{ type: "riddle" }] });
    expect((await callOf(riddle)).text).toBe("[content of an unknown kind]");
  });

  test("answers another request", async () => {
    const other = ({ id }: McpMessage) => reply(`not ${id}`, textResult("hello"));
    expect(await callOf(other)).toEqual(NO_RESULT);
  });

  test("ends its answer before the result", async () => {
    expect(await callOf(() => eventStream(""))).toEqual(NO_RESULT);
    const progress = event({ jsonrpc: "2.0", method: "notifications/message", params: {} });
    expect(await callOf(() => eventStream(progress))).toEqual(NO_RESULT);
  });

  test("answers with an HTTP status", async () => {
    const secret = "the body is told to nobody";
    expect(await callOf(() => new Response(secret, { status: 500 }))).toEqual(
      failed("The server answered with the HTTP status 500."),
    );
    expect(await callOf(() => new Response(secret, { status: 403 }))).toEqual(
      failed("The server refuses access."),
    );
  });

  test("compresses its answer", async () => {
    const bomb = Bun.gzipSync(new Uint8Array(100_000));
    const headers = { "content-type": "application/json", "content-encoding": "gzip" };
    expect(await callOf(() => new Response(bomb, { headers }))).toEqual(
      failed("The request failed: the response is compressed."),
    );
  });

  test("redirects, which is not followed", async () => {
    await using inner = new ToolServer();
    for (const status of [301, 302, 303, 307, 308]) {
      const headers = { location: inner.url };
      expect(await callOf(() => new Response(null, { status, headers }))).toEqual(
        failed("The request failed: the server redirects, which is not followed."),
      );
    }
    // Not even to another path of the same server.
    const same = () => new Response(null, { status: 307, headers: { location: "/other" } });
    expect((await callOf(same)).is_error).toBe(true);
    expect(inner.received).toEqual([]);
  });
});

test("the first of two answers counts, and the stream of the call may go on", async () => {
  const twice = ({ id }: McpMessage) => {
    const answer = (text: string) => event({ jsonrpc: "2.0", id, result: textResult(text) });
    return eventStream(endless(answer("first") + answer("second"), ": and on\n\n", 100));
  };
  expect(await callOf(twice)).toEqual({ text: "first", is_error: false });
});

test("requests for the model and for files are refused, and questions without a person declined", async () => {
  const replies: unknown[] = [];
  const asks = ({ id }: McpMessage) => {
    const ask = (method: string, params: object) =>
      event({ jsonrpc: "2.0", id: `ask ${method}`, method, params });
    const messages = [{ role: "user", content: { type: "text", text: "hi" } }];
    const requestedSchema = { type: "object", properties: {} };
    return eventStream(
      new ReadableStream<string>({
        async start(controller) {
          controller.enqueue(ask("sampling/createMessage", { messages, maxTokens: 100 }));
          controller.enqueue(ask("roots/list", {}));
          controller.enqueue(ask("elicitation/create", { message: "Name?", requestedSchema }));
          await until(() => replies.length === 3, "three replies");
          controller.enqueue(event({ jsonrpc: "2.0", id, result: textResult("done") }));
          controller.close();
        },
      }) as never,
    );
  };
  await using tools = await startToolServers();
  await using server = new ToolServer();
  const added = await tools.add(server.url);
  server.answer = (received) => {
    const { message } = received;
    if (message.method === undefined) replies.push(message);
    return message.method === "tools/call" ? asks(message) : undefined;
  };
  expect(await tools.callTool(added, "echo")).toEqual({ text: "done", is_error: false });
  const byId = Object.fromEntries(replies.map((each) => [(each as McpMessage).id, each]));
  expect(byId["ask sampling/createMessage"]).toMatchObject({ error: { code: -32601 } });
  expect(byId["ask roots/list"]).toMatchObject({ error: { code: -32601 } });
  expect(byId["ask elicitation/create"]).toMatchObject({ result: { action: "decline" } });
});

describe("the tools of a server", () => {
  async function listOf(answer: (message: McpMessage) => Response | undefined) {
    await using tools = await startToolServers();
    await using server = new ToolServer();
    server.answer = ({ message }) =>
      message.method === "tools/list" ? answer(message) : undefined;
    return await tools.add(server.url);
  }
  const listed = (tools: unknown[]) => listOf(({ id }) => reply(id, { tools }));

  test("are at most 128", async () => {
    const many = Array.from({ length: 3000 }, (_, place) => tool(`tool_${place}`));
    const { tools, status } = await listed(many);
    expect(status).toBe("ready");
    expect(tools).toHaveLength(128);
    expect(tools.at(-1)?.name).toBe("tool_127");
  });

  test("are none if the list is too large", async () => {
    const many = Array.from({ length: 50_000 }, (_, place) => tool(`tool_${place}`));
    expect(await listed(many)).toMatchObject({ status: "unreachable", tools: [] });
  });

  test("have bounded descriptions and schemas", async () => {
    const schema = (text: string) => ({ type: "object", description: text });
    const { tools } = await listed([
      { ...tool("long", "ä😀".repeat(100_000)), title: "t".repeat(10_000) },
      { ...tool("huge"), inputSchema: schema("x".repeat(40_000)) },
      { ...tool("unstorable"), inputSchema: schema("\0") },
      { ...tool("changed", "a\0b\ud800c"), title: "Send \u202eyenom" },
    ]);
    expect(tools.map(({ name }) => name)).toEqual(["long", "changed"]);
    expect([...(tools[0]?.description ?? "")]).toHaveLength(4096);
    expect(tools[0]?.title).toHaveLength(128);
    expect(tools[1]).toMatchObject({ title: "Send \\u202eyenom", description: "ab\ufffdc" });
    const large = Array.from({ length: 100 }, (_, place) => ({
      ...tool(`large_${place}`),
      inputSchema: schema("x".repeat(20_000)),
    }));
    expect((await listed(large)).tools).toHaveLength(12);
    const cjk = Array.from({ length: 60 }, (_, place) =>
      tool(`cjk_${place}`, "\u6f22".repeat(4000)),
    );
    expect((await listed(cjk)).tools).toHaveLength(21);
  });

  test("have valid names and schemas; others are left out", async () => {
    const names = ["", "a b", "näme", "a\nb", "x".repeat(129), "ok", "ok", "__proto__", "a/b.c-d"];
    const { tools } = await listed([
      ...names.map((name) => tool(name)),
      { name: "no_schema" },
      { ...tool("list"), inputSchema: [] },
      { ...tool("text"), inputSchema: { type: "string" } },
      { ...tool("odd"), title: 1, description: ["x"], annotations: "none" },
      null,
      "tool",
    ]);
    expect(tools.map(({ name }) => name)).toEqual(["ok", "__proto__", "a/b.c-d", "odd"]);
    expect(tools.at(-1)).toMatchObject({ title: "", description: "" });
  });

  test("come from at most eight pages", async () => {
    let pages = 0;
    const { tools, status } = await listOf(({ id }) => {
      pages++;
      return reply(id, { tools: [tool(`tool_${pages}`)], nextCursor: "again" });
    });
    expect([status, tools.length, pages]).toEqual(["ready", 8, 8]);
  });

  test("are unknown while the server does not answer, or answers nonsense", async () => {
    const timeouts = { contactMs: 500, refreshMs: 500, callMs: 500, elicitMs: 500 };
    await using hasty = await startToolServers({ timeouts });
    await using server = new ToolServer();
    server.answer = () => hang();
    expect(await hasty.add(server.url)).toMatchObject({
      status: "unreachable",
      error: "The server did not answer in time.",
    });
    await using tools = await startToolServers();
    server.answer = () => json("nonsense");
    expect(await tools.add(server.url)).toMatchObject({ status: "unreachable" });
    server.answer = () => new Response("secret", { status: 503 });
    const { error } = await tools.add(server.url);
    expect(error).toBe("The server answered with the HTTP status 503.");
  });
});

test("a name that leads to a private address is refused, also when it did not at first", async () => {
  await using server = new ToolServer();
  const { port } = new URL(server.url);
  const fetch = createGuardedFetch({ allowPrivate: false, resolve: async () => ["127.0.0.1"] });
  await using tools = await startToolServers({ fetch });
  const added = await tools.add(`https://tools.example.com:${port}/mcp`);
  expect(added).toMatchObject({
    status: "unreachable",
    error: "The request failed: the address belongs to a private or special range.",
  });
  expect(server.received).toEqual([]);
});

test("a server that ends its stream of notifications at once is not asked again at once", async () => {
  await using tools = await startToolServers();
  let streams = 0;
  await using server = new ToolServer();
  server.listening = () => {
    streams++;
    return eventStream("retry: 0\n\n");
  };
  const startedAt = performance.now();
  const added = await tools.add(server.url);
  for (let calls = 0; calls < 20; calls++) await tools.callTool(added, "echo");
  await until(() => streams > 0, "the stream");
  // It is asked every five seconds at most.
  const againAtMost = Math.floor((performance.now() - startedAt) / 5000);
  expect(streams).toBeLessThanOrEqual(1 + againAtMost);
});

test("servers of the operator that hang delay neither the list nor the other tools of a turn", async () => {
  await using hanging = new ToolServer();
  hanging.answer = () => hang();
  await using server = new ToolServer();
  const timeouts = { contactMs: 60_000, refreshMs: 500, callMs: 20_000, elicitMs: 20_000 };
  const tools = await startToolServers({
    offered: [{ name: "hangs", url: hanging.url }],
    timeouts,
  });
  const added = await tools.add(server.url);
  const listed = await tools.known(tools.ada.id);
  expect(listed).toMatchObject([
    { status: "ready" },
    { status: "unreachable", error: "The server has not answered yet.", tools: [] },
  ]);
  const hangs = listed[1]?.id ?? "";
  const grants = [added.id, hangs].map((server_id) => ({ server_id, tool: "echo" }));
  const fingerprint = added.tools[0]?.fingerprint ?? "";
  await tools.store.write((tx) =>
    tx.setToolGrants(
      tools.agent.account.id,
      grants.map((grant) => ({ ...grant, policy: "always", fingerprint })),
    ),
  );
  expect(await tools.offered()).toMatchObject([{ server_id: added.id }]);
  // It was still being asked.
  expect(hanging.received.map(({ signal }) => signal.aborted)).toEqual([false]);
  await hanging[Symbol.asyncDispose]();
  await tools[Symbol.asyncDispose]();
});

test("a result of nearly four megabytes is read and cut, and bounded to its end", async () => {
  const text = "a".repeat(4 * 1024 * 1024 - 200_000);
  const { text: told, is_error } = await callOf(({ id }) => reply(id, textResult(text)));
  expect(is_error).toBe(false);
  expect(told).toEndWith("[The result was cut here: it is longer than 64 KiB.]");
  const more = Array(60_000).fill(0);
  expect(await callOf(({ id }) => reply(id, { ...textResult(text), more }))).toEqual(TOO_COMPLEX);
});
