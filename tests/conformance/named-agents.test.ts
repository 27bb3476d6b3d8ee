import { afterAll, describe, expect, test } from "bun:test";
import type { Account, InputOf, OutputOf } from "@parley/protocol";
import {
  agentOf,
  answerTo,
  type Caller,
  failure,
  groupOf,
  outcome,
  type Person,
  replyTo,
  say,
  signUp,
  transports,
} from "@parley/testkit/client.ts";
import { answers } from "@parley/testkit/provider-responders.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { limits, noRates, onSeveralNodes, startServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { until } from "@parley/testkit/until.ts";

const sharedProvider = await startSharedProvider();
const server = await startServer({ ...noRates, ...providersAt(sharedProvider.url) });
const { url } = server;
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await sharedProvider[Symbol.asyncDispose]();
});

type Creation = Partial<InputOf<"createAgent">>;

const create = (caller: Pick<Person, "call">, input: Creation = {}) =>
  caller.call("createAgent", { name: "research", kind: "model", provider: "claude", ...input });
const agentsOf = async (caller: Pick<Person, "call">) => (await caller.call("getMyAgents")).items;
const namesOf = async (caller: Pick<Person, "call">) =>
  (await agentsOf(caller)).map(({ name }) => name);

/** A new person with a key for Claude, and a caller on the given transport. */
async function newcomer(transport: (typeof transports)[number]) {
  const person = await signUp(url, "owner");
  const api_key = `key-${Bun.randomUUIDv7()}`;
  await person.call("setAgentKey", { provider: "claude", api_key });
  return { person, api_key, caller: (await person.via(transport)) as Caller };
}

type Overview = Extract<OutputOf<"getUpdates">, { ahead: unknown }>;
const overview = async (person: Person, accounts_since?: number) =>
  (await person.call("getUpdates", { known: {}, accounts_since })) as Overview;

describe.each(transports)("over %s", (transport) => {
  test("people create agents beside their default ones, with the key of the provider", async () => {
    const { person, caller } = await newcomer(transport);
    await using _ = caller;
    const made = await create(caller, { model: "model-x", instructions: "Cite sources." });
    expect(made).toMatchObject({
      kind: "model",
      name: "research",
      provider: "claude",
      username: `${person.username}:research`,
      display_name: `${person.username}'s research`,
      key_configured: true,
      key_source: "own",
      model: "model-x",
      instructions: "Cite sources.",
      online: null,
    });
    await create(caller, { name: "writer", provider: "gpt", display_name: "The writer" });
    expect(await namesOf(caller)).toEqual(["claude", "gpt", "research", "writer"]);
    expect((await agentsOf(caller))[3]).toMatchObject({
      display_name: "The writer",
      model: "model-o",
      key_configured: false,
    });
  });

  test("an external agent has neither provider nor key", async () => {
    const { person, caller } = await newcomer(transport);
    await using _ = caller;
    const agent_username = agentOf(person, "builder");
    expect(
      await create(caller, { name: "builder", kind: "external", provider: undefined }),
    ).toEqual({
      ...(await agentsOf(caller))[2],
      kind: "external",
      name: "builder",
      provider: null,
      username: agent_username,
      key_configured: false,
      key_tail: null,
      key_source: null,
      model: "",
      online: false,
    } as never);
    const given = { agent_username };
    const wrong = [
      () => caller.call("setAgentKey", { ...given, api_key: "sk-0123456789" }),
      () => caller.call("removeAgentKey", given),
      () => caller.call("testAgentKey", given),
    ];
    for (const call of wrong) {
      expect((await failure(call())).parameters?.fields).toEqual({
        agent_username: "is an external agent: it has no provider",
      });
    }
    const granted = await failure(caller.call("setAgentTools", { ...given, grants: [] }));
    expect(granted.parameters?.fields).toEqual({
      agent_username: "is an external agent: its program has tools of its own",
    });
    const moved = await failure(caller.call("updateAgent", { ...given, provider: "gpt" }));
    expect(moved.parameters?.fields).toEqual({ provider: "is for models only" });
  });

  test("names follow the rule for providers", async () => {
    const { caller } = await newcomer(transport);
    await using _ = caller;
    const wrong = [
      "",
      "x",
      "Ab",
      "x".repeat(33),
      "9lives",
      "-a",
      "a b",
      "a:b",
      "ünï",
      "аdmin",
      "a\0b",
    ];
    for (const name of [...wrong, "Bot"]) {
      const failed = await failure(create(caller, { name }));
      expect([name, Object.keys(failed.parameters?.fields ?? {})]).toEqual([name, ["name"]]);
    }
    const fields = async (input: Creation) =>
      Object.keys((await failure(create(caller, input))).parameters?.fields ?? {});
    expect(await fields({ provider: undefined })).toEqual(["provider"]);
    expect(await fields({ provider: "mistral" })).toEqual(["provider"]);
    expect(await fields({ kind: "external" })).toEqual(["provider"]);
    expect(await fields({ display_name: "Support" })).toEqual(["display_name"]);
    expect(await fields({ kind: "other" as never })).toEqual(["kind"]);
  });

  test("a name that is reserved for accounts is free for an agent: it has its owner's before it", async () => {
    const { caller } = await newcomer(transport);
    await using _ = caller;
    for (const name of ["bot", "help", "api", "support"]) {
      const { username, display_name } = await create(caller, { name });
      expect(username).toEndWith(`:${name}`);
      expect(display_name).toEndWith(`'s ${name}`);
    }
  });

  test("a name is taken by an agent, a default agent, an incoming hook and a deleted agent", async () => {
    const { person, caller } = await newcomer(transport);
    await using _ = caller;
    const { id } = await groupOf(person);
    await person.call("createIncomingHook", { chat_id: id, name: "alerts" });
    const { username } = await create(caller);
    for (const name of ["research", "claude", "alerts"]) {
      expect((await failure(create(caller, { name }))).code).toBe("conflict");
    }
    await caller.call("deleteAgent", { agent_username: username });
    expect((await failure(create(caller))).code).toBe("conflict");
    const hook = { chat_id: id, name: "research" };
    expect((await failure(person.call("createIncomingHook", hook))).code).toBe("conflict");
  });

  test("updateAgent changes what is given; another provider has its own default model", async () => {
    const { caller } = await newcomer(transport);
    await using _ = caller;
    const { username } = await create(caller, { model: "model-x", instructions: "Be brief." });
    const update = (changes: object) =>
      caller.call("updateAgent", { agent_username: username, ...changes });
    expect(await update({ display_name: "Sage" })).toMatchObject({
      display_name: "Sage",
      model: "model-x",
      instructions: "Be brief.",
    });
    expect(await update({ provider: "claude" })).toMatchObject({ model: "model-x" });
    expect(await update({ provider: "gpt" })).toMatchObject({
      provider: "gpt",
      name: "research",
      model: "model-o",
      key_configured: false,
      instructions: "Be brief.",
    });
    expect(await update({ provider: "claude", model: "model-y" })).toMatchObject({
      provider: "claude",
      model: "model-y",
    });
  });

  test("default agents keep their provider, and cannot be deleted", async () => {
    const { person, caller } = await newcomer(transport);
    await using _ = caller;
    const agent_username = agentOf(person);
    const moved = caller.call("updateAgent", { agent_username, provider: "gpt" });
    expect((await failure(moved)).code).toBe("conflict");
    const named = await caller.call("updateAgent", { agent_username, display_name: "Clo" });
    expect(named).toMatchObject({ provider: "claude", display_name: "Clo" });
    expect((await failure(caller.call("deleteAgent", { agent_username }))).code).toBe("conflict");
    expect(await namesOf(caller)).toEqual(["claude", "gpt"]);
  });

  test("operations on agents take a provider or a username, exactly one of them", async () => {
    const { caller } = await newcomer(transport);
    await using _ = caller;
    const { username } = await create(caller);
    const agent_username = username.toUpperCase();
    const set = await caller.call("setAgentLimits", { agent_username, daily_tokens: 5 });
    expect(set.daily_tokens).toBe(5);
    await caller.call("setAgentProfile", { agent_username, instructions: "Be kind." });
    const [claude, , research] = await agentsOf(caller);
    expect(research).toMatchObject({ instructions: "Be kind.", limits: { daily_tokens: 5 } });
    expect(claude).toMatchObject({ instructions: null, limits: { daily_tokens: 2_000_000 } });
    const stored = await caller.call("setAgentKey", { agent_username, api_key: "sandbox-5678" });
    expect(stored.provider).toBe("claude");
    expect((await agentsOf(caller)).map(({ key_configured }) => key_configured)).toEqual([
      true,
      false,
      true,
    ]);
    expect((await caller.call("testAgentKey", { agent_username })).sandbox).toBe(true);
    await caller.call("removeAgentKey", { agent_username });
    expect((await agentsOf(caller)).some(({ key_configured }) => key_configured)).toBe(false);
    const both = { agent_username, provider: "claude" };
    for (const input of [both, {}]) {
      const failed = await failure(caller.call("setAgentProfile", input));
      expect(failed.code).toBe("bad_request");
    }
  });

  test("only its owner may change an agent, and only agents can be changed", async () => {
    const { person, caller } = await newcomer(transport);
    await using _ = caller;
    const { username: agent_username } = await create(person);
    const stranger = await signUp(url, "stranger");
    await using other = await stranger.via(transport);
    const calls = (by: Caller, name: string) => [
      by.call("updateAgent", { agent_username: name, display_name: "Mine" }),
      by.call("deleteAgent", { agent_username: name }),
      by.call("setAgentLimits", { agent_username: name, daily_tokens: 1 }),
      by.call("setAgentKey", { agent_username: name, api_key: "sandbox-0123" }),
    ];
    const codes = (by: Caller, name: string) => Promise.all(calls(by, name).map(outcome));
    expect(new Set(await codes(other, agent_username))).toEqual(new Set(["forbidden"]));
    expect(new Set(await codes(caller, "nobody:here"))).toEqual(new Set(["not_found"]));
    expect(new Set(await codes(caller, person.username))).toEqual(new Set(["bad_request"]));
  });
});

test("two agents of one provider answer with their own instructions, and are counted apart", async () => {
  const { person, api_key } = await newcomer("HTTP");
  sharedProvider.respond(api_key, answers("Hello."));
  const { username } = await create(person, {
    instructions: "You are a pirate.",
    model: "model-p",
  });
  await using socket = await person.connect();
  const chat = await groupOf(person, { username }, { username: agentOf(person) });
  const trigger = await say(person, chat, `@${username} hello`);
  const answer = await answerTo(socket, trigger, username);
  expect(answer).toMatchObject({
    content: "Hello.",
    sender: { username },
    turn: { model: "model-p" },
  });
  const [call] = sharedProvider.calls(api_key);
  expect(JSON.stringify(call?.body)).toContain("You are a pirate.");
  const { items } = await person.call("getAgentUsage", {});
  expect(items.map(({ agent }) => agent)).toEqual([username]);
});

test("a new agent, its new name and its deletion reach the owner's other clients", async () => {
  const { person } = await newcomer("HTTP");
  await using socket = await person.connect();
  const since = (await overview(person)).accounts_seq;
  const { username, version } = await create(person);
  const named = (each: { username: string }) => each.username === username;
  const made = await socket.event("events.accountUpdated", named);
  expect(made.params).toMatchObject({ username, kind: "agent", version });
  const missed = await overview(person, since);
  expect(missed.accounts.map((account) => account.username)).toContain(username);
  await person.call("deleteAgent", { agent_username: username });
  const gone = await socket.event(
    "events.accountUpdated",
    (each) => named(each) && each.deleted === true,
  );
  expect(gone.params).toMatchObject({ display_name: "Deleted account", deleted: true });
});

test("new settings of an agent are announced to the owner's clients, and to nobody else", async () => {
  const { person } = await newcomer("HTTP");
  const other = await signUp(url, "other");
  const { username: agent_username } = await create(person);
  await groupOf(person, other, { username: agent_username });
  const { version } = await person.call("getUser", { username: agent_username });
  await using stranger = await other.connect();
  const changes = [
    () => person.call("setAgentProfile", { agent_username, model: "other-model" }),
    () => person.call("updateAgent", { agent_username, instructions: "Be brief." }),
    () => person.call("setAgentLimits", { agent_username, daily_tokens: 5000 }),
    () => person.call("setAgentTools", { agent_username, grants: [] }),
    () => person.call("setAgentKey", { agent_username, api_key: "sandbox-1234567890" }),
    () => person.call("removeAgentKey", { agent_username }),
  ];
  let since = (await overview(person)).own_seq;
  for (const change of changes) {
    await using socket = await person.connect();
    await change();
    const { params, own_seq } = await socket.event("events.accountUpdated");
    expect(params.username).toStartWith(`${person.username}:`);
    // The owner's own counter orders the settings, and tells a client that it has missed some.
    expect(own_seq).toBe(since + 1);
    expect((await overview(person)).own_seq).toBe(since + 1);
    since++;
  }
  expect(await person.call("getUser", { username: agent_username })).toMatchObject({ version });
  const isTheirs = ({ username }: Account) => username === agent_username;
  expect(await stranger.settledEvents("events.accountUpdated", isTheirs)).toEqual([]);
});

test("settings that change together with the name are ordered like other settings", async () => {
  const { person } = await newcomer("HTTP");
  const { username: agent_username } = await create(person);
  const named = ({ username }: Account) => username === agent_username;
  const before = await overview(person);
  await using socket = await person.connect();
  const display_name = "New name";
  await person.call("updateAgent", { agent_username, display_name, instructions: "Be brief." });
  const announced = await socket.settledEvents("events.accountUpdated", named);
  expect(announced.map(({ params, own_seq }) => [params.display_name, own_seq])).toEqual([
    [display_name, undefined],
    [display_name, before.own_seq + 1],
  ]);
  const after = await overview(person);
  expect(after.own_seq).toBe(before.own_seq + 1);
  // A name alone is no setting: others see it too, and its version orders it.
  await person.call("updateAgent", { agent_username, display_name: "Another name" });
  expect((await overview(person)).own_seq).toBe(after.own_seq);
});

test("a deleted agent stops, leaves its groups and closes its direct conversations", async () => {
  const { person, api_key } = await newcomer("HTTP");
  const other = await signUp(url, "other");
  const { username } = await create(person);
  const group = await groupOf(person, other, { username });
  const direct = await person.call("startChat", { usernames: [username] });
  await using socket = await other.connect();
  await using own = await person.connect();
  const asked = await say(other, group, `@${username} hello`);
  const { id } = await replyTo(socket, asked);
  const privately = await replyTo(own, await say(person, direct, "hello"));
  await until(() => sharedProvider.calls(api_key).length === 2, "both answers have begun");
  await person.call("deleteAgent", { agent_username: username });
  const left = await socket.event("events.conversationUpdated", (each) => each.id === group.id);
  expect(left.params.changes).toMatchObject([{ kind: "left", subjects: [{ username }] }]);
  expect(left.params.participants.map((each) => each.username)).not.toContain(username);
  for (const [message_id, code] of [
    [id, "conflict"],
    [privately.id, "forbidden"],
  ] as const) {
    expect((await person.call("getMessage", { message_id })).turn?.status).toBe("stopped");
    const again = person.call("retryAgentTurn", { message_id });
    expect((await failure(again)).code).toBe(code);
  }
  expect((await failure(say(person, direct, "hello?"))).code).toBe("forbidden");
  expect((await person.call("getChat", { chat_id: direct.id })).participants).toContainEqual(
    expect.objectContaining({ username, deleted: true, display_name: "Deleted account" }),
  );
  expect(await namesOf(person)).toEqual(["claude", "gpt"]);
  const query = { query: username };
  expect((await person.call("getUsers", query)).items).toEqual([]);
  const inputs = { chat_id: group.id, agent_username: username };
  expect((await failure(person.call("addGroupAgent", inputs))).code).toBe("not_found");
  expect((await agentsOf(person))[0]?.key_configured).toBe(true);
});

test("people have at most 20 agents of their own, however they are created at once", async () => {
  const { person } = await newcomer("HTTP");
  const names = Array.from({ length: 25 }, (_, number) => `agent-${number}`);
  const made = await Promise.all(names.map((name) => outcome(create(person, { name }))));
  expect(made.filter((each) => each === "ok")).toHaveLength(20);
  expect(made.filter((each) => each === "conflict")).toHaveLength(5);
  const [, , created] = await agentsOf(person);
  await person.call("deleteAgent", { agent_username: created?.username ?? "" });
  await create(person);
  expect(await agentsOf(person)).toHaveLength(22);
});

// Each node counts for itself.
test.skipIf(onSeveralNodes)("new agents and hooks share a rate", async () => {
  await using strict = await startServer(limits({ hooks_per_hour: 2 }));
  const person = await signUp(strict.url, "person");
  await create(person, { name: "one" });
  await create(person, { name: "two" });
  expect((await failure(create(person, { name: "three" }))).code).toBe("rate_limited");
});

test("an agent with the name of a provider that is offered later stays as it is", async () => {
  const before = await startServer({ ...noRates, ...providersAt(sharedProvider.url) });
  const person = await signUp(before.url, "early");
  await create(person, { name: "mistral", instructions: "Mine." });
  await before.kill();
  const offered = JSON.parse(providersAt(sharedProvider.url).PARLEY_PROVIDERS);
  await using after = await startServer({
    ...noRates,
    PARLEY_DATA: before.dataDir,
    PARLEY_PROVIDERS: JSON.stringify({ mistral: offered.gpt, ...offered }),
  });
  await using _ = before;
  const again = person.at(after.url);
  expect(await agentsOf(again)).toContainEqual(
    expect.objectContaining({ name: "mistral", provider: "claude", instructions: "Mine." }),
  );
  const wrong = again.call("setAgentProfile", { provider: "mistral", model: "m" });
  expect((await failure(wrong)).code).toBe("not_found");
  const key = { provider: "mistral", api_key: "sk-0123456789" };
  expect((await again.call("setAgentKey", key)).provider).toBe("mistral");
  const late = await signUp(after.url, "late");
  expect(await namesOf(late)).toEqual(["claude", "gpt", "mistral"]);
  await again.call("deleteAgent", { agent_username: agentOf(person, "mistral") });
});
