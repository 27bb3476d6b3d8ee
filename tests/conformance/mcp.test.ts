import { afterAll, describe, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { Message } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  agentOf,
  groupOf,
  type Person,
  people,
  say,
  search,
  signUp,
} from "@parley/testkit/client.ts";
import { externalAgent } from "@parley/testkit/external-agents.ts";
import { nextNode, nodesOf } from "@parley/testkit/nodes.ts";
import { answers, fails, toolCalls } from "@parley/testkit/provider-responders.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { limits, noRates, startServer } from "@parley/testkit/server.ts";
import { ToolServer } from "@parley/testkit/tool-server.ts";
import { finish, newKey, startTurns } from "@parley/testkit/turns.ts";
import { until } from "@parley/testkit/until.ts";

const turns = await startTurns();
const { sharedProvider, server, alice, bob, carol, dave, agentGroup } = turns;
afterAll(() => turns[Symbol.asyncDispose]());

/** The generations of the protocol: with a handshake, and without. */
const generations = ["legacy", "auto"] as const;
type Generation = (typeof generations)[number];

interface ToolAnswer {
  readonly isError?: boolean;
  readonly text: string;
  readonly structured: Record<string, unknown>;
}

/** The official client, whose requests go to all nodes in turn. */
class McpClient implements AsyncDisposable {
  readonly client: Client;

  private constructor(client: Client) {
    this.client = client;
  }

  static async connect(
    { url, token }: Pick<Person, "url" | "token">,
    mode: Generation = "auto",
    headers: Record<string, string> = {},
  ): Promise<McpClient> {
    const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
    const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${token}`, ...headers } },
      fetch: (_, init) => fetch(`${nextNode(url)}/mcp`, { ...init, keepalive: false }),
    });
    await client.connect(transport);
    return new McpClient(client);
  }

  async tool(
    name: string,
    args: Record<string, unknown> = {},
    signal?: AbortSignal,
  ): Promise<ToolAnswer> {
    const result = await this.client.callTool(
      { name, arguments: args },
      { ...(signal && { signal }) },
    );
    const [content] = result.content;
    return {
      ...(result.isError && { isError: true }),
      text: content?.type === "text" ? content.text : "",
      structured: result.structuredContent as Record<string, unknown>,
    };
  }

  [Symbol.asyncDispose]() {
    return this.client.close();
  }
}

/** A request that the official client would not make. */
const request = (person: Pick<Person, "url" | "token">, body: unknown, init: RequestInit = {}) =>
  fetch(`${nextNode(person.url)}/mcp`, {
    method: "POST",
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...init,
    headers: {
      authorization: `Bearer ${person.token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...init.headers,
    },
  });

const ping = { jsonrpc: "2.0", id: 1, method: "ping" };

/** A person with a key of their own, and a direct conversation with their agent. */
async function ownAgent() {
  const person = await signUp(server.url, "owner");
  await person.call("setAgentLimits", { provider: "claude", turns_per_minute: null });
  const key = await newKey(person);
  return { person, key, agent: agentOf(person) };
}

describe.each(generations)("tools of the %s generation", (generation) => {
  test("are listed with their arguments, and say what they do", async () => {
    await using mcp = await McpClient.connect(alice, generation);
    expect(mcp.client.getServerVersion()?.name).toBe("parley");
    const { tools } = await mcp.client.listTools();
    expect(tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint])).toEqual([
      ["get_me", true],
      ["get_users", true],
      ["get_chats", true],
      ["search_messages", true],
      ["get_chat_history", true],
      ["get_message", true],
      ["send_message", false],
      ["add_reaction", false],
      ["remove_reaction", false],
      ["ask_agent", false],
    ]);
    for (const { name, description, inputSchema } of tools) {
      expect([name, description]).toEqual([name, expect.stringMatching(/^[A-Z].+\.$/)]);
      expect(Object.keys(inputSchema)).not.toContain("anyOf");
      for (const [field, schema] of Object.entries(inputSchema.properties ?? {})) {
        expect([name, field, schema]).toEqual([
          name,
          field,
          expect.objectContaining({ description: expect.any(String) }),
        ]);
      }
    }
    const send = tools.find(({ name }) => name === "send_message");
    expect(send?.inputSchema.required).toEqual(["chat_id"]);
  });

  test("do what their operations do", async () => {
    await using mcp = await McpClient.connect(alice, generation);
    const chat = await groupOf(alice, bob);
    expect((await mcp.tool("get_me")).structured).toMatchObject({ username: alice.username });
    const { structured: users } = await mcp.tool("get_users", { usernames: [bob.username] });
    expect(users).toMatchObject({ items: [{ username: bob.username }] });

    const word = `w${Bun.randomUUIDv7().replaceAll("-", "")}`;
    const sent = await mcp.tool("send_message", { chat_id: chat.id, content: `Hello ${word}` });
    const message = await bob.call("getMessage", { message_id: String(sent.structured.id) });
    expect(sent.structured).toEqual(JSON.parse(JSON.stringify(message)));
    expect(JSON.parse(sent.text)).toEqual(sent.structured);

    const named = { message_id: message.id };
    const shown = { id: message.id, content: message.content };
    expect((await mcp.tool("get_message", named)).structured).toMatchObject(shown);
    const { structured: history } = await mcp.tool("get_chat_history", { chat_id: chat.id });
    expect(history).toMatchObject({ items: [shown], has_more: false });
    const { structured: chats } = await mcp.tool("get_chats", { limit: 1 });
    expect(chats).toMatchObject({ items: [{ id: chat.id }] });
    // The first search takes the longest: on a busy machine it may reach its deadline.
    await search(alice, { query: word });
    const { structured: found } = await mcp.tool("search_messages", { query: word });
    expect(found).toMatchObject({ items: [{ message: { id: message.id } }] });

    const reaction = { message_id: message.id, emoji: "👍" };
    const { structured: reacted } = await mcp.tool("add_reaction", reaction);
    expect(reacted).toMatchObject({ emoji: "👍", reactor: { username: alice.username } });
    expect((await mcp.tool("remove_reaction", reaction)).structured).toEqual({ ok: true });
    const { reactions } = await bob.call("getMessage", named);
    expect(reactions).toEqual([]);
  });

  test("fail with the code and the sentence of their operations", async () => {
    await using mcp = await McpClient.connect(carol, generation);
    const chat = await groupOf(alice, bob);
    const { id } = await say(alice, chat, "private");
    const calls: [string, Record<string, unknown>][] = [
      ["get_chat_history", { chat_id: chat.id }],
      ["get_message", { message_id: id }],
      ["send_message", { chat_id: chat.id, content: "x" }],
      ["add_reaction", { message_id: id, emoji: "👍" }],
      ["search_messages", { query: "private", chat_id: chat.id }],
      ["ask_agent", { chat_id: chat.id, text: "x" }],
    ];
    for (const [name, args] of calls) {
      const { isError, text, structured } = await mcp.tool(name, args);
      const { error } = structured as { error: { code: string; message: string } };
      expect([name, isError, error.code]).toEqual([name, true, "forbidden"]);
      expect(text).toBe(`${error.message} (forbidden)`);
    }
    expect((await mcp.tool("get_message", { message_id: 7 })).structured).toEqual({
      error: {
        code: "bad_request",
        message: "bad request: message_id must be a string",
        parameters: { fields: { message_id: "must be a string" } },
      },
    });
    await expect(mcp.tool("delete_messages", {})).rejects.toThrow("Unknown tool: delete_messages");
  });

  test("ask an agent, and return its answer", async () => {
    const { person, key, agent } = await ownAgent();
    await using mcp = await McpClient.connect(person, generation);
    sharedProvider.respond(key, answers("Forty-", "two."));
    const { isError, text, structured } = await mcp.tool("ask_agent", {
      agent_username: agent,
      text: "What is it?",
    });
    expect([isError, text]).toEqual([undefined, "Forty-two."]);
    expect(structured).toMatchObject({
      status: "complete",
      agent_username: agent,
      question: { content: "What is it?", sender: { username: person.username } },
      answer: { content: "Forty-two.", turn: { status: "complete" } },
    });
    const { conversation_id } = structured.question as Message;
    const again = await mcp.tool("ask_agent", { chat_id: conversation_id, text: "And now?" });
    expect(again.text).toBe("Forty-two.");
  });

  test("stop waiting for an agent when the client is gone", async () => {
    await using own = await startServer({
      ...limits({ sockets_per_user: 1, messages_per_second: 0, operations_per_second: 0 }),
      ...providersAt(sharedProvider.url),
    });
    const person = await signUp(own.url, "owner");
    const key = await newKey(person);
    await using mcp = await McpClient.connect(person, generation);
    const question = { agent_username: agentOf(person), text: "x" };
    const cancelled = new AbortController();
    // In the legacy generation a call ends with its connection: there are no sessions to cancel it by.
    const first = await McpClient.connect(person, generation);
    const asked = first
      .tool("ask_agent", { ...question, wait_seconds: 100 }, cancelled.signal)
      .catch((error) => error);
    const call = await sharedProvider.nextCall(key);
    // A wait counts as a socket.
    const isRefused = async () => {
      const { structured } = await mcp.tool("ask_agent", { ...question, wait_seconds: 1 });
      return structured.status !== "waiting";
    };
    await until(isRefused, "refusal of a second wait");
    if (generation === "auto") cancelled.abort();
    else await first.client.close();
    expect(await asked).toBeInstanceOf(Error);
    await until(async () => !(await isRefused()), "end of the first wait");
    call.disconnect();
  });
});

describe("ask_agent", () => {
  test("asks an agent of a group, which it mentions", async () => {
    await using group = await agentGroup();
    const { chat, key, agent } = group;
    await using mcp = await McpClient.connect(alice);
    sharedProvider.respond(key, answers("Hello."));
    const ask = async (text: string) => {
      const { structured } = await mcp.tool("ask_agent", { chat_id: chat.id, text });
      return (structured.question as Message).content;
    };
    expect(await ask("hi")).toBe(`@${agent} hi`);
    expect(await ask(`hi @${agent}`)).toBe(`hi @${agent}`);
  });

  test("says which arguments are missing or wrong", async () => {
    await using group = await agentGroup();
    const { chat } = group;
    await using mcp = await McpClient.connect(alice);
    const second = agentOf(alice, "gpt");
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: second });
    const without = await groupOf(alice, bob);
    const cases: [Record<string, unknown>, Record<string, string>][] = [
      [{}, { text: "is required" }],
      [{ text: "x" }, { agent_username: "is required, or chat_id" }],
      [{ text: "x", agent_username: bob.username }, { agent_username: "is not an agent" }],
      [{ text: "x", chat_id: without.id }, { chat_id: "is a conversation without agents" }],
      [
        { text: "x", chat_id: chat.id },
        { agent_username: "is required: there are several agents" },
      ],
      [
        { text: "x", chat_id: chat.id, agent_username: agentOf(bob) },
        { agent_username: "is not in this conversation" },
      ],
      [{ text: "x", chat_id: chat.id, wait_seconds: 0 }, { wait_seconds: expect.any(String) }],
      [{ text: "x", chat_id: chat.id, wait_seconds: 1000 }, { wait_seconds: expect.any(String) }],
    ];
    for (const [args, fields] of cases) {
      const { structured } = await mcp.tool("ask_agent", args);
      expect(structured).toMatchObject({ error: { code: "bad_request", parameters: { fields } } });
    }
    const others = await mcp.tool("ask_agent", { agent_username: agentOf(bob), text: "x" });
    expect(others.structured).toMatchObject({ error: { code: "forbidden" } });
  });

  test("reports that the turn failed", async () => {
    const { person, key, agent } = await ownAgent();
    await using mcp = await McpClient.connect(person);
    sharedProvider.respond(key, fails(401));
    const failed = await mcp.tool("ask_agent", { agent_username: agent, text: "x" });
    expect(failed.isError).toBe(true);
    expect(failed.text).toEndWith("\n\n(The answer failed: key_rejected)");
    expect(failed.structured).toMatchObject({
      status: "failed",
      answer: { turn: { error: { code: "key_rejected" } } },
    });
  });

  test("reports that the answer was stopped", async () => {
    const { person, key, agent } = await ownAgent();
    // Before the socket: a node that has just begun to follow a conversation may miss deltas.
    await person.call("startChat", { usernames: [agent] });
    await using socket = await person.connect();
    await using mcp = await McpClient.connect(person);
    const asked = mcp.tool("ask_agent", { agent_username: agent, text: "x" });
    const call = await sharedProvider.nextCall(key);
    await call.sendText("Half");
    const { params } = await socket.event("events.messageDelta");
    await person.call("stopAgentTurn", { message_id: params.id });
    const { text, structured } = await asked;
    expect(structured.status).toBe("stopped");
    expect(text).toBe("Half\n\n(The answer was stopped.)");
  });

  test("does not wait longer than it is told to", async () => {
    const { person, key, agent } = await ownAgent();
    await using mcp = await McpClient.connect(person);
    const ask = { agent_username: agent, text: "x", wait_seconds: 1 };
    const { isError, text, structured } = await mcp.tool("ask_agent", ask);
    const { id, conversation_id } = structured.question as Message;
    expect([isError, structured.status, structured.answer]).toEqual([undefined, "waiting", null]);
    expect(text).toContain(`get_chat_history with chat_id ${conversation_id} and after ${id}`);
    await finish(await sharedProvider.nextCall(key), "Late.");
  });

  test("returns the answer to its own question, or to later ones that include it", async () => {
    const { person, key, agent } = await ownAgent();
    await person.call("setAgentLimits", { provider: "claude", waiting_turns: 1 });
    await using mcp = await McpClient.connect(person);
    const chat = await person.call("startChat", { usernames: [agent] });
    await say(person, chat, "zero");
    const zero = await sharedProvider.nextCall(key);
    await using socket = await person.connect();
    const first = mcp.tool("ask_agent", { chat_id: chat.id, text: "one" });
    await socket.event("events.messageNew", ({ content }) => content === "one");
    const second = mcp.tool("ask_agent", { chat_id: chat.id, text: "two" });
    await socket.event("events.messageNew", ({ content }) => content === "two");
    await finish(zero, "Nothing.");
    await finish(await sharedProvider.nextCall(key), "Both.");
    expect([(await first).text, (await second).text]).toEqual(["Both.", "Both."]);
  });

  test("ends with the session", async () => {
    const { person, key, agent } = await ownAgent();
    await using mcp = await McpClient.connect(person);
    const asked = mcp.tool("ask_agent", { agent_username: agent, text: "x" });
    const call = await sharedProvider.nextCall(key);
    await person.call("signOut");
    expect((await asked).structured).toMatchObject({ error: { code: "unauthorized" } });
    await finish(call, "Nobody waits.");
  });

  test("ends when the server stops", async () => {
    await using own = await startServer({ ...noRates, ...providersAt(sharedProvider.url) });
    const person = await signUp(own.url, "owner");
    const key = await newKey(person);
    await using mcp = await McpClient.connect(person);
    const asked = mcp.tool("ask_agent", { agent_username: agentOf(person), text: "x" });
    await sharedProvider.nextCall(key);
    const stopped = own.stop();
    expect((await asked).structured).toMatchObject({ error: { code: "unavailable" } });
    expect(await stopped).toBe(0);
  });
});

describe("ask_agent and an agent with a tool", () => {
  /** A person whose agent may use the tool of a server. */
  async function withTool(policy: "ask" | "always") {
    const own = await startServer({
      ...noRates,
      ...providersAt(sharedProvider.url),
      PARLEY_PRIVATE_ADDRESSES: "allow",
    });
    const person = await signUp(own.url, "owner");
    const tools = new ToolServer();
    const { id } = await person.call("addToolServer", { name: "bank", url: tools.url });
    const agent_username = agentOf(person);
    const grants = [{ server_id: id, tool: "echo", policy }];
    await person.call("setAgentTools", { agent_username, grants });
    return {
      person,
      key: await newKey(person),
      tools,
      agent_username,
      async [Symbol.asyncDispose]() {
        await own[Symbol.asyncDispose]();
        await tools[Symbol.asyncDispose]();
      },
    };
  }
  const callsTool = toolCalls([{ name: "bank__echo", input: { text: "x" } }], "One moment.");

  test("reports that a call waits for approval", async () => {
    await using own = await withTool("ask");
    const { person, key, agent_username } = own;
    await using mcp = await McpClient.connect(person);
    sharedProvider.respond(key, callsTool, answers("Done."));
    const asked = await mcp.tool("ask_agent", { agent_username, text: "Transfer it." });
    expect([asked.isError, asked.structured.status]).toEqual([undefined, "approval_pending"]);
    expect(asked.text).toStartWith("One moment.");
    expect(asked.text).toEndWith(
      "(The agent's owner must approve before it goes on: echo of bank.)",
    );
    const [call] = (asked.structured.answer as Message).tool_calls;
    await using socket = await person.connect();
    await person.call("decideToolCall", { call_id: call?.id ?? "", decision: "approve" });
    await socket.event("events.messageComplete", ({ content }) => content === "Done.");
  });

  test("end by the limits of the agent if the tool asks the agent again", async () => {
    await using own = await withTool("always");
    const { person, key, tools, agent_username } = own;
    await person.call("setAgentLimits", { provider: "claude", turns_per_minute: 3 });
    const round = [callsTool, answers("Asked again.")];
    sharedProvider.respond(key, ...round, ...round, ...round, ...round, ...round);
    await using again = await McpClient.connect(person);
    tools.answer = ({ message: { id, method } }) => {
      if (method !== "tools/call") return;
      const question = { agent_username, text: "Ask yourself.", wait_seconds: 1 };
      return again.tool("ask_agent", question).then(({ text }) => {
        const content = [{ type: "text", text }];
        return Response.json({ jsonrpc: "2.0", id, result: { content } });
      });
    };
    await using mcp = await McpClient.connect(person);
    await using socket = await person.connect();
    const asked = await mcp.tool("ask_agent", { agent_username, text: "Ask yourself." });
    expect(asked.structured.status).toBe("complete");
    const { params } = await socket.event(
      "events.messageComplete",
      ({ turn }) => turn?.status === "failed",
    );
    expect(params.turn?.error?.code).toBe("budget_exceeded");
    expect(tools.got("tools/call")).toHaveLength(3);
    const { conversation_id } = params;
    expect(await person.call("stopChatAgents", { chat_id: conversation_id })).toEqual({
      stopped: 0,
      cancelled: 0,
    });
  });
});

describe("requests to /mcp", () => {
  test("need a valid token", async () => {
    for (const token of ["", "wrong", "pls_wrong"]) {
      const response = await request({ url: server.url, token }, ping);
      expect([token, response.status]).toEqual([token, 401]);
      expect(response.headers.get("www-authenticate")).toBe("Bearer");
    }
    const person = await signUp(server.url, "leaver");
    expect((await request(person, ping)).status).toBe(200);
    await person.call("signOut");
    expect((await request(person, ping)).status).toBe(401);
  });

  test("are refused from other origins, and with other methods", async () => {
    const foreign = await request(dave, ping, { headers: { origin: "https://evil.example" } });
    expect(foreign.status).toBe(403);
    for (const method of ["GET", "DELETE", "PUT"]) {
      const headers = { authorization: `Bearer ${dave.token}` };
      const response = await fetch(`${server.url}/mcp`, { method, headers });
      expect([method, response.status, response.headers.get("allow")]).toEqual([
        method,
        405,
        "POST",
      ]);
    }
  });

  test("are answered with a failure, whatever their body is", async () => {
    const bodies: [unknown, number][] = [
      ["", 400],
      ["{", 400],
      ["null", 400],
      ["[]", 400],
      [7, 400],
      [{}, 400],
      [{ jsonrpc: "2.0", id: 1 }, 400],
      [Array.from({ length: 17 }, () => ping), 400],
      ["x".repeat(300_000), 413],
    ];
    for (const [body, status] of bodies) {
      const response = await request(dave, body);
      expect([JSON.stringify(body).slice(0, 40), response.status]).toEqual([
        JSON.stringify(body).slice(0, 40),
        status,
      ]);
    }
    const text = await request(dave, ping, { headers: { "content-type": "text/plain" } });
    expect(text.status).toBe(415);
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call" };
    for (const params of [null, 1, {}, { name: 1 }, { name: "get_me", arguments: [] }]) {
      const response = await request(dave, { ...call, params });
      expect([params, await response.text()]).toEqual([params, expect.stringContaining('"error"')]);
      expect([params, response.status < 500]).toEqual([params, true]);
    }
  });

  test("open no streams of notifications", async () => {
    const prefix = "io.modelcontextprotocol";
    const method = "subscriptions/listen";
    const _meta = {
      [`${prefix}/protocolVersion`]: "2026-07-28",
      [`${prefix}/clientInfo`]: { name: "test", version: "1" },
      [`${prefix}/clientCapabilities`]: {},
    };
    const params = { _meta, notifications: { toolsListChanged: true } };
    const response = await request(
      dave,
      { jsonrpc: "2.0", id: 1, method, params },
      { headers: { "mcp-protocol-version": "2026-07-28", "mcp-method": method } },
    );
    expect(await response.text()).toContain("Subscription limit reached");
  });

  test("count against the rates of the caller", async () => {
    await using limited = await startServer(
      limits({ operations_per_second: 1, operation_burst: 8, signups_per_hour: 0 }),
    );
    const [person, other] = await people(limited.url, "fast", "other");
    await using mcp = await McpClient.connect(person);
    // At once: a slow machine would regain calls between them.
    const results = await Promise.all(Array.from({ length: 20 }, () => mcp.tool("get_me")));
    const [refused] = results.filter(({ isError }) => isError);
    expect(refused?.structured).toMatchObject({
      error: { code: "rate_limited", parameters: { retry_after: expect.any(Number) } },
    });
    await using others = await McpClient.connect(other);
    expect((await others.tool("get_me")).isError).toBeUndefined();
    const list = Array.from({ length: 16 }, (_, id) => ({
      jsonrpc: "2.0",
      id,
      method: "tools/list",
    }));
    expect((await request(other, list)).status).toBe(429);
  });

  test("count once, also if they call no operation", async () => {
    const call = (name: string, args: unknown = {}) => ({
      jsonrpc: "2.0",
      method: "tools/call",
      params: { name, arguments: args },
    });
    /** As many in one body: nothing is regained while they are counted. */
    const batch = (message: object) => Array.from({ length: 16 }, (_, id) => ({ id, ...message }));
    await using limited = await startServer(
      limits({ operations_per_second: 1, operation_burst: 10, signups_per_hour: 0 }),
    );
    const answerTo = async (body: unknown) => {
      const person = await signUp(limited.url, "caller");
      const response = await request(person, body);
      const refused = (await response.text()).match(/"code":"rate_limited"/g) ?? [];
      return [response.status, refused.length];
    };
    expect(await answerTo(batch(call("get_me")))).toEqual([200, 6]);
    expect(await answerTo(batch(call("ask_agent")))).toEqual([200, 6]);
    const unanswerable = [
      call("no_such_tool"),
      call("get_me", []),
      { ...call("get_me"), id: null },
    ];
    for (const message of unanswerable) {
      expect([message, await answerTo(batch(message))]).toEqual([message, [429, 1]]);
    }
    expect(await answerTo(batch(call("no_such_tool")).slice(0, 10))).toEqual([200, 0]);
  });

  test("have bodies of a bounded number of values and levels", async () => {
    const wide = Object.fromEntries(Array.from({ length: 20_000 }, (_, name) => [`${name}`, 1]));
    const rpc = (method: string, params: object) => ({ jsonrpc: "2.0", id: 1, method, params });
    const bodies: Record<string, unknown> = {
      "wide arguments": rpc("tools/call", { name: "no_such_tool", arguments: wide }),
      "wide capabilities": rpc("initialize", { capabilities: { experimental: wide } }),
      "a long list": rpc("tools/call", { name: "get_me", arguments: { a: Array(5000).fill(1) } }),
      "a deep list": `${"[".repeat(30_000)}${"]".repeat(30_000)}`,
    };
    for (const [what, body] of Object.entries(bodies)) {
      const response = await request(dave, body);
      expect([what, response.status, await response.json()]).toMatchObject([
        what,
        400,
        {
          code: "bad_request",
          description: "bad request: at most 4000 values, nested at most 64 levels deep",
        },
      ]);
    }
    await using mcp = await McpClient.connect(dave);
    const usernames = Array.from({ length: 1000 }, (_, name) => `nobody_${name}`);
    expect((await mcp.tool("get_users", { usernames })).structured).toMatchObject({ items: [] });
  });

  test("of all external agents of a person count against one rate", async () => {
    await using limited = await startServer(
      limits({ operations_per_second: 1, operation_burst: 100, signups_per_hour: 0 }),
    );
    // Nodes share their counts with a delay, so that this test uses one node.
    const owner = await signUp(nodesOf(limited.url).at(-1) as string, "owner");
    const agents = [(await externalAgent(owner)).agent, (await externalAgent(owner)).agent];
    const batch = Array.from({ length: 16 }, () => ping);
    const statuses: number[] = [];
    // 96 requests of each agent: fewer than a rate of its own would take.
    for (let sent = 0; sent < 12; sent++) {
      const agent = agents[sent % 2] as Person;
      statuses.push((await request(agent, batch)).status);
    }
    expect(statuses).toContain(429);
    expect((await request(owner, ping)).status).toBe(200);
  });

  test("of a service key act for a person, and are refused without one", async () => {
    await using own = await startServer({ ...serviceKeySetting() });
    const person = await signUp(own.url, "served");
    const { key: token } = new Backend(own.url);
    const key = { url: own.url, token };
    await using acting = await McpClient.connect(key, "auto", { "x-parley-as": person.username });
    expect((await acting.tool("get_me")).structured).toMatchObject({ username: person.username });
    await using alone = await McpClient.connect(key);
    for (const [name, args] of [
      ["get_me", {}],
      ["ask_agent", { agent_username: agentOf(person), text: "x" }],
    ] as const) {
      expect((await alone.tool(name, args)).structured).toMatchObject({
        error: { code: "forbidden" },
      });
    }
    const { username } = person;
    await new Backend(own.url).call("suspendAccount", { username });
    const suspended = await request(person, ping);
    expect([suspended.status, await suspended.json()]).toEqual([
      403,
      expect.objectContaining({ code: "suspended" }),
    ]);
  });

  test("with the token of an agent do what agents may do, and ask no agents", async () => {
    const person = await signUp(server.url, "owner");
    const { username } = await person.call("createAgent", { name: "helper", kind: "external" });
    const { token } = await person.call("createAgentToken", { agent_username: username });
    const chat = await groupOf(person, bob, { username });
    const other = await groupOf(person, bob);
    await using mcp = await McpClient.connect({ url: server.url, token });
    const history = await mcp.tool("get_chat_history", { chat_id: chat.id });
    expect(history.structured).toMatchObject({ items: [] });
    for (const [name, args] of [
      ["get_chat_history", { chat_id: other.id }],
      ["get_users", {}],
      ["ask_agent", { chat_id: chat.id, text: "x" }],
    ] as const) {
      const { structured } = await mcp.tool(name, args);
      expect([name, structured]).toEqual([
        name,
        { error: expect.objectContaining({ code: "forbidden" }) },
      ]);
    }
  });

  test("get results of a bounded size", async () => {
    const chat = await groupOf(alice, bob);
    await using mcp = await McpClient.connect(alice);
    const long = "ä".repeat(16_000);
    for (let each = 0; each < 20; each++) await say(alice, chat, long);
    const { text, structured } = await mcp.tool("get_chat_history", { chat_id: chat.id });
    const items = structured.items as Message[];
    expect(items).toHaveLength(20);
    expect(new Set(items.map(({ content }) => content))).toEqual(new Set([`${"ä".repeat(4000)}…`]));
    expect(text).toEndWith(
      "(Texts are cut to 4000 characters. get_message returns one message whole.)",
    );
    const message_id = items[0]?.id ?? "";
    expect((await mcp.tool("get_message", { message_id })).structured.content).toBe(long);
  });
});
