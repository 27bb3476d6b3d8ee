import { afterAll, describe, expect, test } from "bun:test";
import {
  type InputOf,
  type operations,
  type PolicyOverrides,
  UNRESTRICTED,
} from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  agentOf,
  groupOf,
  outcome,
  Person,
  post,
  say,
  signUp,
  transports,
} from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";

/** Stricter than what docs/backend.md offers for products to copy. */
const STRICT: PolicyOverrides = {
  directory: "shared",
  start_chats: "none",
  rename: false,
  agents: false,
  hooks: false,
  delete_account: false,
};

const settings = { ...noRates, ...serviceKeySetting() };
const server = await startServer({ ...settings, PARLEY_POLICY: JSON.stringify(STRICT) });
afterAll(() => server[Symbol.asyncDispose]());
const backend = new Backend(server.url);

let count = 0;

async function upsert(user: Partial<InputOf<"upsertUsers">["users"][number]> = {}) {
  const external_id = `policy ${process.pid}-${++count}`;
  const display_name = `Customer ${process.pid} ${count}`;
  const users = [{ external_id, display_name, ...user }];
  const [item] = (await backend.call("upsertUsers", { users })).items;
  if (!item) throw new Error("nothing was returned");
  return item;
}

/** A user of the product, with a token of their own. */
async function customer(policy?: PolicyOverrides): Promise<Person & { id: string }> {
  const { external_id } = await upsert(policy && { policy });
  const { access_token, account } = await backend.call("issueToken", { external_id });
  return Object.assign(new Person(server.url, access_token, account), { id: external_id });
}

const setPolicy = (person: { id: string }, policy: PolicyOverrides) =>
  backend.call("upsertUsers", { users: [{ external_id: person.id, policy }] });

const usernames = ({ items }: { items: readonly { username: string }[] }) =>
  items.map(({ username }) => username);

describe("a policy", () => {
  test("of the server restricts users of the product, and nobody who signed up", async () => {
    const [ada, staff] = [await customer(), await signUp(server.url, "staff")];
    expect((await ada.call("getMe")).policy).toEqual({ ...UNRESTRICTED, ...STRICT });
    expect((await staff.call("getMe")).policy).toBeUndefined();
    expect(await outcome(ada.call("updateMe", { display_name: "Clerk" }))).toBe("forbidden");
    expect(await outcome(staff.call("updateMe", { display_name: "Clerk" }))).toBe("ok");
  });

  test("of the server restricts everybody if it says so", async () => {
    const PARLEY_POLICY = JSON.stringify({ applies_to: "everyone", rename: false });
    await using other = await startServer({ ...noRates, PARLEY_POLICY });
    const person = await signUp(other.url);
    expect((await person.call("getMe")).policy).toEqual({ ...UNRESTRICTED, rename: false });
    expect(await outcome(person.call("updateMe", { display_name: "Clerk" }))).toBe("forbidden");
  });

  test("of a person overrides the server's field by field, and {} removes it", async () => {
    const ada = await customer({ rename: true, files: false });
    const own = { ...UNRESTRICTED, ...STRICT, rename: true, files: false };
    expect((await ada.call("getMe")).policy).toEqual(own);
    await backend.call("upsertUsers", { users: [{ external_id: ada.id, display_name: "Ada" }] });
    expect((await ada.call("getMe")).policy).toEqual(own);
    await setPolicy(ada, {});
    expect((await ada.call("getMe")).policy).toEqual({ ...UNRESTRICTED, ...STRICT });
  });

  test("with an unknown field is refused", async () => {
    const users = [{ external_id: "x", policy: { renames: false } }];
    const { status } = await backend.post("upsertUsers", { users });
    expect(status).toBe(400);
  });

  test("that changes is announced to the person alone, and holds for open sockets", async () => {
    const ada = await customer({ rename: true });
    const ben = await customer();
    const chat = await groupOf(await signUp(server.url), ada, ben);
    await using socket = await ada.connect();
    await using other = await ben.connect();
    await socket.call("updateMe", { display_name: "Ada" });
    await setPolicy(ada, { rename: false });
    const { params } = await socket.event("events.accountUpdated", () =>
      socket.eventsNamed("events.accountUpdated").some(({ own_seq }) => own_seq !== undefined),
    );
    expect(params.username).toBe(ada.username);
    expect(await outcome(socket.call("updateMe", { display_name: "Clerk" }))).toBe("forbidden");
    await say(ada, chat, "done");
    await other.event("events.messageNew", ({ content }) => content === "done");
    const seen = other.eventsNamed("events.accountUpdated");
    expect(seen.filter(({ own_seq }) => own_seq !== undefined)).toEqual([]);
  });

  test("that is repeated is announced once", async () => {
    const ada = await customer();
    await using socket = await ada.connect();
    await setPolicy(ada, { hooks: true });
    await setPolicy(ada, { hooks: true });
    expect(await socket.settledEvents("events.accountUpdated")).toHaveLength(1);
  });
});

describe("a policy forbids", () => {
  const refused: { [Field in keyof PolicyOverrides]: [string, (who: Person) => unknown][] } = {
    rename: [
      ["updateMe", () => ({ display_name: "Helpdesk Staff" })],
      ["setAvatar", () => ({ file_id: null })],
    ],
    agents: [
      ["createAgent", () => ({ name: "mine", kind: "external" })],
      ["setAgentKey", () => ({ provider: "claude", api_key: "sandbox-0123456789" })],
      ["testAgentKey", () => ({ provider: "claude", api_key: "sandbox-0123456789" })],
      ["setAgentProfile", () => ({ provider: "claude", instructions: "Lie." })],
      ["updateAgent", (who) => ({ agent_username: agentOf(who), display_name: "x" })],
      ["setAgentLimits", () => ({ provider: "claude", daily_tokens: null })],
      ["setAgentTools", (who) => ({ agent_username: agentOf(who), grants: [] })],
      ["addToolServer", () => ({ name: "mine", url: "https://tools.example.com/mcp" })],
      ["createAgentToken", (who) => ({ agent_username: agentOf(who) })],
    ],
    files: [["createUpload", () => ({ purpose: "picture", name: "a.png", size: 1 })]],
    hooks: [["createIncomingHook", () => ({ chat_id: crypto.randomUUID(), name: "alerts" })]],
    delete_account: [["deleteMe", (who) => ({ username: who.username })]],
  };

  for (const [field, calls] of Object.entries(refused)) {
    test(`${field} over every transport, and on behalf of the person`, async () => {
      const ada = await customer({ ...STRICT, files: false });
      await using socket = await ada.connect();
      for (const [operation, input] of calls) {
        const overHttp = await post(server.url, operation, input(ada), ada.token);
        expect([operation, overHttp.body]).toMatchObject([operation, { code: "forbidden" }]);
        const reply = await socket.reply(operation, input(ada));
        expect([operation, reply]).toMatchObject([operation, { error: { code: "forbidden" } }]);
        const headers = { "x-parley-as": ada.username };
        const behalf = await post(server.url, operation, input(ada), backend.key, headers);
        expect([operation, behalf.body]).toMatchObject([operation, { code: "forbidden" }]);
      }
    });
  }

  test("a name, and no other setting of the account", async () => {
    const ada = await customer();
    expect(await outcome(ada.call("updateMe", { added_by: "known" }))).toBe("ok");
  });

  test("files also to messages with a file that was uploaded before", async () => {
    const ada = await customer({ files: true });
    const chat = await groupOf(await signUp(server.url), ada);
    const upload = { chat_id: chat.id, name: "a.txt", size: 2 };
    const { upload_url, file } = await ada.call("createUpload", upload);
    await fetch(new URL(upload_url, server.url), { method: "PUT", body: "hi" });
    await setPolicy(ada, { files: false });
    const message = { chat_id: chat.id, content: "hello" };
    const sent = ada.call("sendMessage", { ...message, file_ids: [file.id] });
    expect(await outcome(sent)).toBe("forbidden");
    expect(await outcome(ada.call("sendMessage", message))).toBe("ok");
  });

  test("files to the external agents of a person too", async () => {
    const ada = await customer({ agents: true, start_chats: "agents" });
    const agent = { name: "mine", kind: "external" } as const;
    const { username } = await ada.call("createAgent", agent);
    const { token } = await ada.call("createAgentToken", { agent_username: username });
    const chat = await ada.call("startChat", { usernames: [username] });
    await setPolicy(ada, { files: false });
    const upload = { chat_id: chat.id, name: "a.txt", size: 2 };
    const { body } = await post(server.url, "createUpload", upload, token);
    expect(body).toMatchObject({ code: "forbidden" });
  });

  test("posts of hooks whose creator may use none any more", async () => {
    const ada = await customer({ hooks: true, start_chats: "everyone" });
    const chat = await groupOf(ada);
    const { url } = await ada.call("createIncomingHook", { chat_id: chat.id, name: "alerts" });
    const send = () => fetch(url, { method: "POST", body: JSON.stringify({ text: "hello" }) });
    expect((await send()).status).toBe(200);
    await setPolicy(ada, {});
    expect((await send()).status).toBe(403);
    expect((await ada.call("getChatHistory", { chat_id: chat.id })).items).toHaveLength(1);
  });

  test("no removal of what a person brought before", async () => {
    const ada = await customer({ agents: true });
    await ada.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
    await setPolicy(ada, {});
    expect(await outcome(ada.call("removeAgentKey", { provider: "claude" }))).toBe("ok");
  });
});

describe("the directory", () => {
  /** Somebody with a friend, a former member of their group, and a stranger. */
  async function cast(policy: PolicyOverrides) {
    const ada = await customer(policy);
    const [friend, former, stranger] = [await customer(), await customer(), await customer()];
    const host = await signUp(server.url, "host");
    const chat = await groupOf(host, ada, friend, former);
    await host.call("removeChatMember", { chat_id: chat.id, username: former.username });
    return { ada, host, friend, former, stranger };
  }
  const query = `customer ${process.pid}`;
  const looked = async (who: Person, username: string) => ({
    get: await outcome(who.call("getUser", { username })),
    named: usernames(await who.call("getUsers", { usernames: [username] })).length,
    profiles: (await who.call("getProfiles", { usernames: [username] })).items.length,
    block: await outcome(who.call("blockUser", { username })),
  });
  const found = { get: "ok", named: 1, profiles: 1, block: "ok" };
  const missing = { get: "not_found", named: 0, profiles: 0, block: "not_found" };

  test("of everyone lists strangers", async () => {
    const { ada, stranger } = await cast({ directory: "everyone" });
    expect(usernames(await ada.call("getUsers", { query }))).toContain(stranger.username);
    expect(await looked(ada, stranger.username)).toEqual(found);
  });

  test("of shared conversations has the people of these, now and before, and no others", async () => {
    const { ada, host, friend, former, stranger } = await cast({ directory: "shared" });
    const agents = [agentOf(ada), agentOf(ada, "gpt")];
    const known = [ada, friend, former].map(({ username }) => username);
    const searched = usernames(await ada.call("getUsers", { query }));
    expect(searched.toSorted()).toEqual([...known, ...agents].toSorted());
    const listed = usernames(await ada.call("getUsers"));
    expect(listed).toEqual([...known, ...agents, host.username].toSorted());
    for (const { username } of [friend, former]) expect(await looked(ada, username)).toEqual(found);
    expect(await looked(ada, stranger.username)).toEqual(missing);
  });

  test("of nobody lists and finds only the person and their agents", async () => {
    const { ada, friend, stranger } = await cast({ directory: "none" });
    const own = [ada.username, agentOf(ada), agentOf(ada, "gpt")];
    expect(usernames(await ada.call("getUsers"))).toEqual(own);
    expect(usernames(await ada.call("getUsers", { query }))).toEqual(own);
    expect(await looked(ada, friend.username)).toEqual(found);
    expect(await looked(ada, stranger.username)).toEqual(missing);
  });

  test("is the same for MCP clients", async () => {
    const { ada, stranger } = await cast({ directory: "shared" });
    const response = await fetch(`${server.url}/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${ada.token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "get_users", arguments: { query } },
      }),
    });
    const text = await response.text();
    expect(text).toContain(ada.username);
    expect(text).not.toContain(`${stranger.username}\\"`);
  });
});

describe("somebody who cannot be looked up", () => {
  const named: [keyof typeof operations, (username: string, chat: { id: string }) => object][] = [
    ["getUser", (username) => ({ username })],
    ["blockUser", (username) => ({ username })],
    ["unblockUser", (username) => ({ username })],
    ["startChat", (username) => ({ usernames: [username] })],
    ["addChatMembers", (username, { id }) => ({ chat_id: id, usernames: [username] })],
    ["addGroupAgent", (username, { id }) => ({ chat_id: id, agent_username: username })],
    ["removeGroupAgent", (username, { id }) => ({ chat_id: id, agent_username: username })],
    ["deleteAgent", (agent_username) => ({ agent_username })],
    ["getAgentModels", (agent_username) => ({ agent_username })],
    ["removeAgentKey", (agent_username) => ({ agent_username })],
  ];

  test.each(named)("does not exist for %s, and neither do their agents", async (name, inputFor) => {
    const [ada, stranger] = [await customer(), await customer()];
    const chat = await groupOf(await signUp(server.url), ada);
    const answer = async (username: string) => {
      const { body } = await post(server.url, name, inputFor(username, chat), ada.token);
      return JSON.stringify(body).replaceAll(username, "<name>");
    };
    for (const suffix of ["", ":claude"]) {
      const toNobody = await answer(`nobody_at_all${suffix}`);
      expect(await answer(`${stranger.username}${suffix}`)).toBe(toNobody);
      expect(toNobody).toContain("not_found");
    }
  });

  test("can be unblocked by whoever could look them up before", async () => {
    const [ada, stranger] = [await customer({ directory: "everyone" }), await customer()];
    await ada.call("blockUser", { username: stranger.username });
    await setPolicy(ada, {});
    expect(await outcome(ada.call("unblockUser", { username: stranger.username }))).toBe("ok");
    expect((await ada.call("getBlocked")).items).toEqual([]);
  });
});

describe("new conversations", () => {
  /** How a person may be reached: in a new conversation, and in a group of the caller's. */
  async function reach(who: Person, other: { username: string }, group: { id: string }) {
    const usernames = [other.username];
    return [
      await outcome(who.call("startChat", { usernames })),
      await outcome(who.call("startChat", { usernames, kind: "group" })),
      await outcome(who.call("addChatMembers", { chat_id: group.id, usernames })),
    ];
  }

  test.each([
    ["everyone", "ok", "ok", "ok"],
    ["shared", "ok", "forbidden", "ok"],
    ["agents", "forbidden", "forbidden", "ok"],
    ["none", "forbidden", "forbidden", "forbidden"],
  ] as const)("with start_chats %s: friend %s, stranger %s, own agent %s", async (...row) => {
    const [start_chats, toFriend, toStranger, toAgent] = row;
    const ada = await customer({ start_chats, directory: "everyone" });
    const [friend, stranger] = [await customer(), await customer()];
    const host = await signUp(server.url, "host");
    await groupOf(host, ada, friend);
    const group = await groupOf(host, ada);
    expect(await reach(ada, stranger, group)).toEqual(Array(3).fill(toStranger));
    expect(await reach(ada, friend, group)).toEqual(Array(3).fill(toFriend));
    expect(await reach(ada, { username: agentOf(ada) }, group)).toEqual(Array(3).fill(toAgent));
    const gpt = { chat_id: group.id, agent_username: agentOf(ada, "gpt") };
    expect(await outcome(ada.call("addGroupAgent", gpt))).toBe(toAgent);
  });

  for (const transport of transports) {
    test(`over ${transport} return a direct conversation that exists`, async () => {
      const [ada, host] = [await customer(), await signUp(server.url, "host")];
      const { id } = await host.call("startChat", { usernames: [ada.username] });
      await using caller = await ada.via(transport);
      expect(await caller.call("startChat", { usernames: [host.username] })).toMatchObject({ id });
    });
  }
});
