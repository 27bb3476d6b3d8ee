import { afterAll, describe, expect, test } from "bun:test";
import type { Account } from "@parley/protocol";
import {
  agentOf,
  answerTo,
  type Caller,
  failure,
  groupOf,
  type Person,
  people,
  post,
  say,
  signUp,
  transports,
} from "@parley/testkit/client.ts";
import { answers } from "@parley/testkit/provider-responders.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { keyOf, startSharedProvider } from "@parley/testkit/shared-provider.ts";

const sharedProvider = await startSharedProvider();
const server = await startServer({ ...noRates, ...providersAt(sharedProvider.url) });
const [alice, bob] = await people(server.url, "alice", "bob");
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await sharedProvider[Symbol.asyncDispose]();
});

const MASK = "••••••••";
const DEFAULT_LIMITS = {
  spenders: "participants",
  daily_tokens: 2_000_000,
  chat_daily_tokens: null,
  turns_per_minute: 60,
  waiting_turns: 16,
} as const;

const agentsOf = async (caller: Pick<Person, "call">) => (await caller.call("getMyAgents")).items;
const claudeOf = async (caller: Pick<Person, "call">) =>
  (await agentsOf(caller)).find(({ provider }) => provider === "claude");

/** A new person, with a caller on the given transport. */
async function newcomer(transport: (typeof transports)[number]) {
  const person = await signUp(server.url, "newcomer");
  return { person, caller: (await person.via(transport)) as Caller };
}

describe.each(transports)("getMyAgents over %s", (transport) => {
  test("lists one agent for each provider, with default settings", async () => {
    const { person, caller } = await newcomer(transport);
    await using _ = caller;
    const { username } = person;
    expect(await agentsOf(caller)).toEqual([
      {
        kind: "model",
        name: "claude",
        provider: "claude",
        username: `${username}:claude`,
        display_name: `${username}'s Claude`,
        version: 0,
        key_configured: false,
        key_tail: null,
        key_source: null,
        model: "model-a",
        instructions: null,
        limits: DEFAULT_LIMITS,
        online: null,
        tools: [],
      },
      {
        kind: "model",
        name: "gpt",
        provider: "gpt",
        username: `${username}:gpt`,
        display_name: `${username}'s GPT`,
        version: 0,
        key_configured: false,
        key_tail: null,
        key_source: null,
        model: "model-o",
        instructions: null,
        limits: DEFAULT_LIMITS,
        online: null,
        tools: [],
      },
    ]);
  });
});

describe.each(transports)("setAgentKey over %s", (transport) => {
  test("stores a key and shows only its tail", async () => {
    const { caller } = await newcomer(transport);
    await using _ = caller;
    expect(
      await caller.call("setAgentKey", { provider: "claude", api_key: "sk-0123456789-tail" }),
    ).toEqual({ provider: "claude", key_tail: `${MASK}tail` });
    const [claude, gpt] = await agentsOf(caller);
    expect(claude).toMatchObject({ key_configured: true, key_tail: `${MASK}tail` });
    expect(gpt).toMatchObject({ key_configured: false, key_tail: null });
  });

  test("replaces a key", async () => {
    const { caller } = await newcomer(transport);
    await using _ = caller;
    await caller.call("setAgentKey", { provider: "gpt", api_key: "sk-first-0123456789" });
    await caller.call("setAgentKey", { provider: "gpt", api_key: "sk-other-9876543210" });
    expect((await agentsOf(caller))[1]).toMatchObject({ key_tail: `${MASK}3210` });
  });

  test("shows the last four characters of keys longer than four", async () => {
    await using caller = await alice.via(transport);
    const tail = async (api_key: string) =>
      (await caller.call("setAgentKey", { provider: "claude", api_key })).key_tail;
    expect(await tail("elevenchars")).toBe(`${MASK}hars`);
    expect(await tail("12345")).toBe(`${MASK}2345`);
    expect(await tail("1234")).toBe(MASK);
    expect(await tail("x")).toBe(MASK);
  });

  test("ignores white space around a key", async () => {
    const { person, caller } = await newcomer(transport);
    await using _ = caller;
    const key = `key-${person.username}-0123`;
    sharedProvider.respond(key, answers("Hello."));
    expect(
      await caller.call("setAgentKey", { provider: "claude", api_key: ` \t${key}\r\n` }),
    ).toMatchObject({ key_tail: `${MASK}0123` });
    await using socket = await person.connect();
    const chat = await person.call("startChat", { usernames: [agentOf(person)] });
    const answer = await answerTo(socket, await say(person, chat, "hi"));
    expect(answer).toMatchObject({ content: "Hello.", turn: { status: "complete" } });
    expect(sharedProvider.calls(key).map(keyOf)).toEqual([key]);
  });

  test("rejects malformed keys with an error that names the field but not the key", async () => {
    await using caller = await alice.via(transport);
    const wrong: unknown[] = [
      ...["", "   ", "\n", "two words", "two\nlines", "tab\tinside", "schlüssel-0123", "nul\0byte"],
      ...["x".repeat(1025), 12_345_678, null, undefined, ["key"], { key: "x" }, true],
    ];
    const before = await claudeOf(caller);
    for (const api_key of wrong) {
      const failed = await failure(
        caller.call("setAgentKey", { provider: "claude", api_key } as never),
      );
      expect(failed.code).toBe("bad_request");
      expect(Object.keys(failed.parameters?.fields ?? {})).toEqual(["api_key"]);
      if (typeof api_key === "string" && api_key.trim() !== "") {
        expect(JSON.stringify([failed.message, failed.parameters])).not.toContain(api_key);
      }
    }
    expect(await claudeOf(caller)).toEqual(before as never);
  });

  test("accepts all printable ASCII characters, and up to 1024 of them", async () => {
    await using caller = await alice.via(transport);
    const printable = String.fromCharCode(...Array.from({ length: 94 }, (_, n) => 33 + n));
    for (const api_key of [printable, "k".repeat(1024)]) {
      expect(await caller.call("setAgentKey", { provider: "claude", api_key })).toEqual({
        provider: "claude",
        key_tail: MASK + api_key.slice(-4),
      });
    }
  });

  test("does not affect other people", async () => {
    const { caller } = await newcomer(transport);
    await using _ = caller;
    const other = await signUp(server.url, "other");
    await caller.call("setAgentKey", { provider: "claude", api_key: "sk-0123456789-tail" });
    expect(await claudeOf(other)).toMatchObject({ key_configured: false, key_tail: null });
  });
});

describe.each(transports)("removeAgentKey over %s", (transport) => {
  test("deletes the key, and is idempotent", async () => {
    const { caller } = await newcomer(transport);
    await using _ = caller;
    await caller.call("setAgentKey", { provider: "claude", api_key: "sk-0123456789-tail" });
    for (let times = 0; times < 2; times++) {
      expect(await caller.call("removeAgentKey", { provider: "claude" })).toBeUndefined();
      expect(await claudeOf(caller)).toMatchObject({ key_configured: false, key_tail: null });
    }
  });

  test("keeps the keys of other providers and other people", async () => {
    const { caller } = await newcomer(transport);
    await using _ = caller;
    await caller.call("setAgentKey", { provider: "claude", api_key: "sk-0123456789-tail" });
    await caller.call("setAgentKey", { provider: "gpt", api_key: "sk-0123456789-tail" });
    await bob.call("setAgentKey", { provider: "claude", api_key: "sk-0123456789-tail" });
    await caller.call("removeAgentKey", { provider: "claude" });
    expect((await agentsOf(caller)).map(({ key_configured }) => key_configured)).toEqual([
      false,
      true,
    ]);
    expect(await claudeOf(bob)).toMatchObject({ key_configured: true });
  });
});

describe.each(transports)("an unknown provider over %s", (transport) => {
  const others = {
    setAgentKey: { api_key: "sk-0123456789" },
    removeAgentKey: {},
    setAgentProfile: { display_name: "Name" },
    setAgentLimits: { daily_tokens: 5 },
  } as const;

  test.each(Object.keys(others) as (keyof typeof others)[])("is a 400 of %s", async (operation) => {
    await using caller = await alice.via(transport);
    const wrong = [
      "mistral",
      "Claude",
      "CLAUDE",
      "claude ",
      "",
      "x".repeat(33),
      5,
      null,
      undefined,
    ];
    for (const provider of wrong) {
      const failed = await failure(
        caller.call(operation, { ...others[operation], provider } as never),
      );
      expect({ provider, code: failed.code }).toEqual({ provider, code: "bad_request" });
      expect(Object.keys(failed.parameters?.fields ?? {})).toEqual(["provider"]);
    }
  });

  test("is answered with the list of providers", async () => {
    await using caller = await alice.via(transport);
    const failed = await failure(caller.call("removeAgentKey", { provider: "mistral" }));
    expect(failed.parameters?.fields).toEqual({ provider: "must be one of claude, gpt" });
  });
});

describe.each(transports)("setAgentProfile over %s", (transport) => {
  test("changes only the given fields", async () => {
    const { person, caller } = await newcomer(transport);
    await using _ = caller;
    const given = { display_name: "Sage", model: "model-x", instructions: "Be kind.\nBe brief." };
    const profile = {
      kind: "model" as const,
      name: "claude",
      provider: "claude",
      username: agentOf(person),
      key_configured: false,
      key_tail: null,
      key_source: null,
      limits: DEFAULT_LIMITS,
      online: null,
      tools: [],
      version: expect.any(Number),
      ...given,
    };
    const set = (changes: object) =>
      caller.call("setAgentProfile", { provider: "claude", ...changes });
    expect(await set(given)).toEqual(profile);
    expect(await set({ display_name: " Wise  " })).toEqual({ ...profile, display_name: "Wise" });
    expect(await set({ model: "model-y" })).toMatchObject({
      display_name: "Wise",
      model: "model-y",
    });
    expect(await set({ instructions: "" })).toMatchObject({ instructions: null, model: "model-y" });
    expect(await set({ model: null, instructions: null })).toMatchObject({
      display_name: "Wise",
      model: "model-a",
      instructions: null,
    });
    expect(await set({})).toMatchObject({ display_name: "Wise", model: "model-a" });
    expect(await claudeOf(caller)).toMatchObject({ display_name: "Wise", model: "model-a" });
    expect((await agentsOf(caller))[1]).toMatchObject({ model: "model-o" });
  });

  test("rejects invalid values with the name of the field", async () => {
    await using caller = await alice.via(transport);
    const wrong: [field: string, value: unknown][] = [
      ["display_name", ""],
      ["display_name", "  "],
      ["display_name", "x".repeat(65)],
      ["display_name", "two\nlines"],
      ["model", ""],
      ["model", "x".repeat(129)],
      ["model", "two\nlines"],
      ["model", 5],
      ["instructions", "x".repeat(8001)],
      ["instructions", ["x"]],
      ["instructions", "nul\0byte"],
    ];
    const before = await claudeOf(caller);
    for (const [field, value] of wrong) {
      const input = { provider: "claude", [field]: value };
      const failed = await failure(caller.call("setAgentProfile", input as never));
      expect([field, failed.code]).toEqual([field, "bad_request"]);
      expect(Object.keys(failed.parameters?.fields ?? {})).toEqual([field]);
    }
    expect(await claudeOf(caller)).toEqual(before as never);
  });

  test("shows a new name everywhere, and sends it to everyone who shares a conversation with the agent", async () => {
    const { person, caller } = await newcomer(transport);
    await using _ = caller;
    const chat = await groupOf(person, bob, { username: agentOf(person) });
    await using reader = await bob.connect();
    await using own = await person.connect();
    await using stranger = await alice.connect();
    await caller.call("setAgentProfile", { provider: "claude", display_name: "Sage" });
    const account = {
      username: agentOf(person),
      kind: "agent",
      display_name: "Sage",
      version: expect.any(Number),
    } as const;
    const isNamed = ({ display_name }: Account) => display_name === "Sage";
    for (const socket of [reader, own]) {
      expect((await socket.event("events.accountUpdated", isNamed)).params).toEqual(account);
    }
    expect(await stranger.settledEvents("events.accountUpdated", isNamed)).toEqual([]);
    expect(await bob.call("getUser", { username: agentOf(person) })).toEqual(account);
    expect((await bob.call("getGroupAgents", { chat_id: chat.id })).items).toEqual([
      { agent: account, always_on: false },
    ]);
    expect((await bob.call("getChat", { chat_id: chat.id })).participants).toContainEqual(account);
  });
});

describe.each(transports)("setAgentLimits over %s", (transport) => {
  test("changes only the given limits, lifts those that are null, and returns all", async () => {
    const { caller } = await newcomer(transport);
    await using _ = caller;
    const set = (changes: object) =>
      caller.call("setAgentLimits", { provider: "claude", ...changes });
    expect(await set({})).toEqual(DEFAULT_LIMITS);
    expect(await set({ spenders: "owner", daily_tokens: 5000 })).toEqual({
      ...DEFAULT_LIMITS,
      spenders: "owner",
      daily_tokens: 5000,
    });
    expect(await set({ chat_daily_tokens: 0, turns_per_minute: 3, waiting_turns: 1 })).toEqual({
      spenders: "owner",
      daily_tokens: 5000,
      chat_daily_tokens: 0,
      turns_per_minute: 3,
      waiting_turns: 1,
    });
    expect(await set({ daily_tokens: null, spenders: "participants" })).toEqual({
      spenders: "participants",
      daily_tokens: null,
      chat_daily_tokens: 0,
      turns_per_minute: 3,
      waiting_turns: 1,
    });
    expect((await claudeOf(caller))?.limits).toEqual(await set({}));
    expect((await agentsOf(caller))[1]?.limits).toEqual(DEFAULT_LIMITS);
  });

  test("distinguishes lifted limits from limits that were never set", async () => {
    const { caller } = await newcomer(transport);
    await using _ = caller;
    const lifted = { daily_tokens: null, turns_per_minute: null };
    await caller.call("setAgentProfile", { provider: "claude", instructions: "Be kind." });
    expect((await claudeOf(caller))?.limits).toEqual(DEFAULT_LIMITS);
    await caller.call("setAgentLimits", { provider: "claude", ...lifted });
    await caller.call("setAgentProfile", { provider: "claude", instructions: null });
    expect((await claudeOf(caller))?.limits).toEqual({ ...DEFAULT_LIMITS, ...lifted });
  });

  test("does not change name, model and instructions, nor do they change the limits", async () => {
    const { caller } = await newcomer(transport);
    await using _ = caller;
    const given = { display_name: "Sage", model: "model-x", instructions: "Be kind." };
    await caller.call("setAgentLimits", { provider: "claude", daily_tokens: 7 });
    await caller.call("setAgentProfile", { provider: "claude", ...given });
    await caller.call("setAgentLimits", { provider: "claude", turns_per_minute: 2 });
    expect(await claudeOf(caller)).toMatchObject({
      ...given,
      limits: { ...DEFAULT_LIMITS, daily_tokens: 7, turns_per_minute: 2 },
    });
  });

  test("rejects invalid values with the name of the field", async () => {
    await using caller = await alice.via(transport);
    const numbers = ["daily_tokens", "chat_daily_tokens", "turns_per_minute"];
    const wrong: [field: string, value: unknown][] = [
      ...numbers.flatMap((field) =>
        [-1, 1.5, "5", true, 2 ** 53, {}].map((value): [string, unknown] => [field, value]),
      ),
      ...[0, 101, 1.5, "5", true].map((value): [string, unknown] => ["waiting_turns", value]),
      ...["everyone", "", 5].map((value): [string, unknown] => ["spenders", value]),
    ];
    for (const [field, value] of wrong) {
      const input = { provider: "claude", [field]: value };
      const failed = await failure(caller.call("setAgentLimits", input as never));
      expect([field, value, failed.code]).toEqual([field, value, "bad_request"]);
      expect(Object.keys(failed.parameters?.fields ?? {})).toEqual([field]);
    }
    expect((await claudeOf(caller))?.limits).toEqual(DEFAULT_LIMITS);
  });
});

describe.each(transports)("getAgentUsage over %s", (transport) => {
  test("is empty before the first turn", async () => {
    const { caller } = await newcomer(transport);
    await using _ = caller;
    expect(await caller.call("getAgentUsage")).toEqual({ items: [] });
  });

  test("counts turns, failures and tokens by agent, conversation and day, only for the owner", async () => {
    const { person, caller } = await newcomer(transport);
    await using _ = caller;
    const key = `key-${person.username}`;
    sharedProvider.respond(key, answers("Hello."));
    for (const provider of ["claude", "gpt"]) {
      await person.call("setAgentKey", { provider, api_key: key });
    }
    await using socket = await person.connect();
    const direct = await person.call("startChat", { usernames: [agentOf(person)] });
    const group = await groupOf(person, bob, { username: agentOf(person, "gpt") });
    for (const words of ["one", "two"]) await answerTo(socket, await say(person, direct, words));
    await answerTo(socket, await say(bob, group, `@${agentOf(person, "gpt")} three`));
    await person.call("removeAgentKey", { provider: "gpt" });
    const failed = await answerTo(socket, await say(bob, group, `@${agentOf(person, "gpt")} four`));
    const day = failed.created_at.slice(0, 10);
    const { items } = await caller.call("getAgentUsage");
    expect(items).toEqual([
      {
        agent: agentOf(person),
        conversation_id: direct.id,
        day,
        turns: 2,
        failures: 0,
        input_tokens: 50,
        output_tokens: 30,
      },
      {
        agent: agentOf(person, "gpt"),
        conversation_id: group.id,
        day,
        turns: 2,
        failures: 1,
        input_tokens: 25,
        output_tokens: 15,
      },
    ]);
    expect((await bob.call("getAgentUsage")).items).not.toContainEqual(
      expect.objectContaining({ conversation_id: group.id }),
    );
    const since = (input: object) => caller.call("getAgentUsage", input).then((got) => got.items);
    const yesterday = new Date(Date.parse(day) - 1).toISOString();
    const tomorrow = new Date(Date.parse(day) + 86_400_000).toISOString();
    expect(await since({ since: yesterday })).toEqual(items);
    expect(await since({ since: yesterday, until: tomorrow })).toEqual(items);
    expect(await since({ since: tomorrow })).toEqual([]);
    expect(await since({ until: yesterday })).toEqual([]);
  });

  test("rejects an invalid time with the name of the field", async () => {
    await using caller = await alice.via(transport);
    for (const field of ["since", "until"]) {
      for (const value of ["yesterday", "", 5, "2026-13-45T00:00:00Z"]) {
        const failed = await failure(caller.call("getAgentUsage", { [field]: value } as never));
        expect([field, value, failed.code]).toEqual([field, value, "bad_request"]);
        expect(Object.keys(failed.parameters?.fields ?? {})).toEqual([field]);
      }
    }
  });
});

test("every operation on agents needs a token", async () => {
  const operations = [
    ...["createAgent", "updateAgent", "deleteAgent", "getAgentModels"],
    ...["getMyAgents", "setAgentKey", "removeAgentKey", "setAgentProfile", "setAgentLimits"],
    ...["getAgentUsage", "stopAgentTurn", "retryAgentTurn", "getTurn", "getGroupAgents"],
    ...["addGroupAgent", "removeGroupAgent", "setGroupAgentMode", "stopChatAgents"],
    "sendComponentAction",
  ];
  for (const operation of operations) {
    expect((await post(server.url, operation, {})).status).toBe(401);
    expect((await post(server.url, operation, {}, "ply_wrong")).status).toBe(401);
  }
});

test("getUsers finds agents only for their owner", async () => {
  const named = async (person: Person) =>
    (await person.call("getUsers", { query: alice.username })).items.map(
      ({ username }) => username,
    );
  expect(await named(alice)).toEqual([alice.username, agentOf(alice), agentOf(alice, "gpt")]);
  expect(await named(bob)).toEqual([alice.username]);
});

describe("the sandbox", () => {
  test("answers a sandbox key without a request to the provider", async () => {
    const person = await signUp(server.url, "tester");
    const api_key = "sandbox-0123456789";
    expect(await person.call("setAgentKey", { provider: "gpt", api_key })).toEqual({
      provider: "gpt",
      key_tail: `${MASK}6789`,
    });
    await using socket = await person.connect();
    const chat = await person.call("startChat", { usernames: [agentOf(person, "gpt")] });
    const answer = await answerTo(socket, await say(person, chat, "help"));
    expect(answer).toMatchObject({ turn: { status: "complete", error: null } });
    expect(answer.content).toContain("sandbox");
    expect(sharedProvider.calls(api_key)).toEqual([]);
  });

  test("if off, rejects sandbox keys, and never sends stored ones to a provider", async () => {
    await using before = await startServer({ ...noRates, ...providersAt(sharedProvider.url) });
    const person = await signUp(before.url, "tester");
    const api_key = "sandbox-9876543210";
    await person.call("setAgentKey", { provider: "claude", api_key });
    await before.kill();
    await using after = await startServer({
      ...noRates,
      ...providersAt(sharedProvider.url),
      PARLEY_DATA: before.dataDir,
      PARLEY_SANDBOX: "off",
    });
    const again = person.at(after.url);
    for (const key of [api_key, " sandbox", "sandbox\n"]) {
      const failed = await failure(again.call("setAgentKey", { provider: "gpt", api_key: key }));
      expect(failed.parameters?.fields).toHaveProperty("api_key");
    }
    await using socket = await again.connect();
    const chat = await again.call("startChat", { usernames: [agentOf(person)] });
    const answer = await answerTo(socket, await say(again, chat, "hi"));
    expect(answer.turn).toMatchObject({ status: "failed", error: { code: "key_rejected" } });
    expect(sharedProvider.calls(api_key)).toEqual([]);
  });
});
