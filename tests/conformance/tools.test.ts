import { afterAll, describe, expect, test } from "bun:test";
import { agentOf, failure, type Person, people, transports } from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { ToolServer, tool } from "@parley/testkit/tool-server.ts";
import { until } from "@parley/testkit/until.ts";

const offered = new ToolServer();
offered.token = "operator's";
const server = await startServer({
  ...noRates,
  PARLEY_PRIVATE_ADDRESSES: "allow",
  PARLEY_TOOL_SERVERS: JSON.stringify([
    { name: "Everybody's", url: offered.url, token: "operator's" },
  ]),
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await offered[Symbol.asyncDispose]();
});
const { url } = server;

const code = async (call: Promise<unknown>) => (await failure(call)).code;

const ownServers = async (caller: Pick<Person, "call">) =>
  (await caller.call("getToolServers")).items.filter(({ operator }) => !operator);

describe.each(transports)("tool servers over %s", (transport) => {
  async function newcomer() {
    const [person] = await people(url, "ada");
    return { person, caller: await person.via(transport) };
  }

  test("a server is added with its tools, listed, refreshed and removed", async () => {
    const { caller } = await newcomer();
    await using _ = caller;
    await using tools = new ToolServer();
    tools.token = "secret";
    const added = await caller.call("addToolServer", {
      name: " My  tools ",
      url: tools.url,
      token: "secret",
    });
    expect(added).toEqual({
      id: expect.any(String),
      name: "My tools",
      url: tools.url,
      status: "ready",
      error: null,
      operator: false,
      tools: [
        {
          name: "echo",
          title: "",
          description: "The tool echo.",
          input_schema: { type: "object", properties: { text: { type: "string" } } },
        },
      ],
    });
    expect(await ownServers(caller)).toEqual([added]);
    tools.tools = [tool("other")];
    const refreshed = await caller.call("refreshToolServer", { server_id: added.id });
    expect(refreshed.tools.map(({ name }) => name)).toEqual(["other"]);
    expect(await ownServers(caller)).toEqual([refreshed]);
    await caller.call("removeToolServer", { server_id: added.id });
    expect(await ownServers(caller)).toEqual([]);
    const again = caller.call("removeToolServer", { server_id: added.id });
    expect(await code(again)).toBe("not_found");
  });

  test("a server gets another token and name, and keeps what agents were granted", async () => {
    const { caller, person } = await newcomer();
    await using _ = caller;
    await using tools = new ToolServer();
    tools.token = "first";
    const input = { name: "tools", url: tools.url, token: "first" };
    const { id: server_id } = await caller.call("addToolServer", input);
    await caller.call("addToolServer", { name: "other", url: tools.url });
    const grant = { server_id, tool: "echo", policy: "always" } as const;
    const agent_username = agentOf(person);
    await caller.call("setAgentTools", { agent_username, grants: [grant] });
    const update = (changes: { name?: string; token?: string | null }) =>
      caller.call("updateToolServer", { server_id, ...changes });
    tools.token = "second";
    expect(await update({ token: "wrong" })).toMatchObject({ status: "unauthorized" });
    expect(await update({ token: "second" })).toMatchObject({ name: "tools", status: "ready" });
    expect(await code(update({ name: "other" }))).toBe("conflict");
    expect(await update({ name: "renamed" })).toMatchObject({ name: "renamed", status: "ready" });
    expect(await update({ token: null })).toMatchObject({ status: "unauthorized" });
    tools.token = null;
    expect(await caller.call("refreshToolServer", { server_id })).toMatchObject({
      name: "renamed",
      status: "ready",
    });
    const { items } = await caller.call("getMyAgents");
    const agent = items.find(({ username }) => username === agent_username);
    expect(agent?.tools).toEqual([{ ...grant, changed: false }]);
  });

  test("a server gets another address, which is sent no token of the earlier one", async () => {
    const { caller, person } = await newcomer();
    await using _ = caller;
    await using before = new ToolServer();
    await using after = new ToolServer();
    before.token = "secret";
    const added = { name: "tools", url: before.url, token: "secret" };
    const { id: server_id } = await caller.call("addToolServer", added);
    const grant = { server_id, tool: "echo", policy: "always" } as const;
    const agent_username = agentOf(person);
    await caller.call("setAgentTools", { agent_username, grants: [grant] });
    const update = (changes: { url: string; token?: string }) =>
      caller.call("updateToolServer", { server_id, ...changes });
    expect(await update({ url: before.url })).toMatchObject({ status: "ready" });
    after.tools = [tool("echo"), tool("other")];
    const moved = await update({ url: after.url });
    expect(moved).toMatchObject({ name: "tools", url: after.url, status: "ready" });
    expect(moved.tools.map(({ name }) => name)).toEqual(["echo", "other"]);
    expect(after.received.filter(({ headers }) => headers.has("authorization"))).toEqual([]);
    const { items } = await caller.call("getMyAgents");
    const agent = items.find(({ username }) => username === agent_username);
    expect(agent?.tools).toEqual([{ ...grant, changed: false }]);
    expect(await update({ url: before.url })).toMatchObject({ status: "unauthorized" });
    const returned = await update({ url: before.url, token: "secret" });
    expect(returned).toMatchObject({ url: before.url, status: "ready" });
    const refused = await failure(update({ url: "ftp://tools.example.com" }));
    expect(refused).toMatchObject({
      code: "bad_request",
      parameters: { fields: { url: expect.any(String) } },
    });
    expect(await ownServers(caller)).toEqual([returned]);
  });

  test("a server that cannot be reached is kept, with a sentence that tells no secret", async () => {
    const { caller } = await newcomer();
    await using _ = caller;
    await using tools = new ToolServer();
    tools.token = "right";
    const refused = await caller.call("addToolServer", {
      name: "refuses",
      url: tools.url,
      token: "wrong-token",
    });
    expect(refused).toMatchObject({
      status: "unauthorized",
      error: "The server demands authorization.",
      tools: [],
    });
    const unknown = await caller.call("addToolServer", {
      name: "unknown",
      url: "https://tools.invalid/mcp?key=secret",
    });
    expect(unknown).toMatchObject({
      status: "unreachable",
      error: "The request failed: the name cannot be resolved.",
    });
  });

  test("names are unique, addresses valid, and there are at most 20 servers", async () => {
    const { caller } = await newcomer();
    await using _ = caller;
    const add = (name: string, address = "https://tools.invalid/mcp") =>
      caller.call("addToolServer", { name, url: address });
    await add("one");
    expect(await code(add("one"))).toBe("conflict");
    for (const bad of [
      "nonsense",
      "ftp://example.com/",
      "https://me:pw@example.com/",
      "http://1.1.1.1/",
    ]) {
      expect(await code(add("bad", bad))).toBe("bad_request");
    }
    await Promise.all(Array.from({ length: 19 }, (_, place) => add(`more ${place}`)));
    expect(await code(add("too many"))).toBe("conflict");
    expect(await ownServers(caller)).toHaveLength(20);
  });

  test("an agent is granted tools, and a changed tool is marked until it is granted again", async () => {
    const { caller, person } = await newcomer();
    await using _ = caller;
    await using tools = new ToolServer();
    tools.tools = [tool("read"), tool("write")];
    const { id } = await caller.call("addToolServer", { name: "files", url: tools.url });
    const agent_username = agentOf(person);
    const grants = [
      { server_id: id, tool: "write", policy: "ask" },
      { server_id: id, tool: "read", policy: "always" },
    ] as const;
    const grant = () =>
      caller.call("setAgentTools", { agent_username, grants: grants.map((each) => ({ ...each })) });
    const unchanged = grants.map((each) => ({ ...each, changed: false }));
    expect((await grant()).tools).toEqual(unchanged);
    const shown = async () => {
      const { items } = await caller.call("getMyAgents");
      return items.find(({ username }) => username === agent_username)?.tools;
    };
    expect(await shown()).toEqual(unchanged);
    tools.tools = [tool("read", "Deletes everything."), tool("write")];
    await caller.call("refreshToolServer", { server_id: id });
    const marked = unchanged.map((each) => ({ ...each, changed: each.tool === "read" }));
    expect(await shown()).toEqual(marked);
    // Also if the client has read the profile before the tool changed.
    for (const read of [marked, unchanged]) {
      await caller.call("setAgentTools", { agent_username, grants: read });
      expect(await shown()).toEqual(marked);
    }
    expect((await grant()).tools).toEqual(unchanged);
    await caller.call("setAgentTools", { agent_username, grants: [] });
    const kept = caller.call("setAgentTools", { agent_username, grants: marked });
    expect(await failure(kept)).toMatchObject({ code: "bad_request" });
    await caller.call("removeToolServer", { server_id: id });
    expect(await shown()).toEqual([]);
  });

  test("grants are refused for other people's agents and servers, and for tools that are not there", async () => {
    const { caller, person } = await newcomer();
    await using _ = caller;
    const [other] = await people(url, "bob");
    await using tools = new ToolServer();
    const own = await caller.call("addToolServer", { name: "own", url: tools.url });
    const theirs = await other.call("addToolServer", { name: "theirs", url: tools.url });
    const grant = (server_id: string, name = "echo", agent_username = agentOf(person)) =>
      caller.call("setAgentTools", {
        agent_username,
        grants: [{ server_id, tool: name, policy: "always" }],
      });
    expect(await code(grant(theirs.id))).toBe("bad_request");
    expect(await code(grant(own.id, "missing"))).toBe("bad_request");
    expect(await code(grant(own.id, "echo", agentOf(other)))).toBe("forbidden");
    expect(await code(grant(own.id, "echo", "nobody:claude"))).toBe("not_found");
    const twice = { server_id: own.id, tool: "echo", policy: "ask" } as const;
    const doubled = caller.call("setAgentTools", {
      agent_username: agentOf(person),
      grants: [twice, { ...twice, policy: "always" }],
    });
    expect(await code(doubled)).toBe("bad_request");
    for (const name of ["refreshToolServer", "removeToolServer", "updateToolServer"] as const) {
      expect(await code(caller.call(name, { server_id: theirs.id }))).toBe("not_found");
    }
    expect(await ownServers(other)).toHaveLength(1);
  });

  test("a server that is removed while it is asked for its tools is not added", async () => {
    const { caller } = await newcomer();
    await using _ = caller;
    await using tools = new ToolServer();
    const asked = Promise.withResolvers<void>();
    const removed = Promise.withResolvers<void>();
    tools.answer = async () => {
      asked.resolve();
      await removed.promise;
      return undefined;
    };
    const adding = failure(caller.call("addToolServer", { name: "Slow", url: tools.url }));
    await asked.promise;
    const [added] = await ownServers(caller);
    await caller.call("removeToolServer", { server_id: added?.id ?? "" });
    removed.resolve();
    expect(await adding).toMatchObject({ code: "conflict" });
    expect(await ownServers(caller)).toEqual([]);
  });

  test("a server of the operator is everybody's, and nobody removes it", async () => {
    const { caller, person } = await newcomer();
    await using _ = caller;
    const first = async () => (await caller.call("getToolServers")).items[0];
    await until(async () => (await first())?.status === "ready", "the server of the operator");
    const shared = await first();
    expect(shared).toMatchObject({ name: "Everybody's", operator: true, status: "ready" });
    const server_id = shared?.id ?? "";
    expect(await code(caller.call("removeToolServer", { server_id }))).toBe("forbidden");
    const renamed = caller.call("updateToolServer", { server_id, name: "mine" });
    expect(await code(renamed)).toBe("forbidden");
    expect(await caller.call("refreshToolServer", { server_id })).toMatchObject({ id: server_id });
    const { tools } = await caller.call("setAgentTools", {
      agent_username: agentOf(person),
      grants: [{ server_id, tool: "echo", policy: "direct" }],
    });
    expect(tools).toEqual([{ server_id, tool: "echo", policy: "direct", changed: false }]);
  });
});
