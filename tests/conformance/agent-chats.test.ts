import { afterAll, describe, expect, test } from "bun:test";
import type { InputOf } from "@parley/protocol";
import {
  agentOf,
  answerTo,
  failure,
  groupOf,
  type Person,
  say,
  signUp,
  transports,
} from "@parley/testkit/client.ts";
import { answers } from "@parley/testkit/provider-responders.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";

const sharedProvider = await startSharedProvider();
const server = await startServer({ ...noRates, ...providersAt(sharedProvider.url) });
const { url } = server;
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await sharedProvider[Symbol.asyncDispose]();
});

const start = (
  caller: Pick<Person, "call">,
  input: Partial<InputOf<"startChat">> & { usernames: string[] },
) => caller.call("startChat", { kind: "direct", ...input });

describe.each(transports)("over %s", (transport) => {
  test("another conversation with one's own agent is the one that is found from then on", async () => {
    const person = await signUp(url, "owner");
    await using caller = await person.via(transport);
    const usernames = [agentOf(person)];
    const first = await start(caller, { usernames });
    const second = await start(caller, { usernames, new: true, title: "Travel plans" });
    const third = await start(caller, { usernames, new: true });
    expect(second).toMatchObject({ kind: "direct", title: "Travel plans", admin: null });
    expect(third).toMatchObject({ kind: "direct", title: null, participant_count: 2 });
    expect(new Set([first.id, second.id, third.id]).size).toBe(3);
    expect((await start(caller, { usernames })).id).toBe(third.id);
    expect((await caller.call("startChat", { usernames })).id).toBe(third.id);
    const { items } = await caller.call("getChats", {});
    expect(items.map(({ id }) => id).sort()).toEqual([first.id, second.id, third.id].sort());
    for (const { id } of [first, second]) {
      expect((await say(person, { id }, "still here")).content).toBe("still here");
    }
  });

  test("a first conversation may be new and have a title too", async () => {
    const person = await signUp(url, "owner");
    await using caller = await person.via(transport);
    const usernames = [agentOf(person)];
    const made = await start(caller, { usernames, new: true, title: "Ideas" });
    expect((await start(caller, { usernames })).id).toBe(made.id);
  });

  test("new conversations are for one's own agents only", async () => {
    const [person, other] = [await signUp(url, "owner"), await signUp(url, "other")];
    await using caller = await person.via(transport);
    const wrong: [Partial<InputOf<"startChat">> & { usernames: string[] }, string][] = [
      [{ usernames: [other.username], new: true }, "new"],
      [{ usernames: [agentOf(person)], new: true, kind: "group" }, "new"],
      [{ usernames: [agentOf(person)], new: true, kind: undefined }, "new"],
      [{ usernames: [agentOf(person), agentOf(person, "gpt")], new: true }, "new"],
      [{ usernames: [], new: true }, "new"],
      [{ usernames: [agentOf(person)], title: "Not new" }, "title"],
    ];
    for (const [input, field] of wrong) {
      const failed = await failure(start(caller, input));
      expect([failed.code, Object.keys(failed.parameters?.fields ?? {})]).toEqual([
        "bad_request",
        [field],
      ]);
    }
    const foreign = start(caller, { usernames: [agentOf(other)], new: true });
    expect((await failure(foreign)).code).toBe("forbidden");
  });

  test("a conversation with an agent can be renamed, one with a person cannot", async () => {
    const [person, other] = [await signUp(url, "owner"), await signUp(url, "other")];
    await using caller = await person.via(transport);
    await using socket = await person.connect();
    const chat = await start(caller, { usernames: [agentOf(person)] });
    const renamed = await caller.call("setChatTitle", { chat_id: chat.id, title: "Recipes" });
    expect(renamed).toMatchObject({ id: chat.id, kind: "direct", title: "Recipes" });
    const { params } = await socket.event("events.conversationUpdated");
    expect(params).toMatchObject({ title: "Recipes", changes: [{ kind: "renamed" }] });
    const direct = await start(caller, { usernames: [other.username] });
    const wrong = caller.call("setChatTitle", { chat_id: direct.id, title: "Us" });
    expect((await failure(wrong)).parameters?.fields).toBeDefined();
  });
});

test("an agent knows nothing of the other conversations", async () => {
  const person = await signUp(url, "owner");
  const api_key = `key-${Bun.randomUUIDv7()}`;
  sharedProvider.respond(api_key, answers("Noted."));
  await person.call("setAgentKey", { provider: "claude", api_key });
  await using socket = await person.connect();
  const usernames = [agentOf(person)];
  const first = await start(person, { usernames });
  await answerTo(socket, await say(person, first, "The password is swordfish."));
  const second = await start(person, { usernames, new: true, title: "Weather" });
  await answerTo(socket, await say(person, second, "What is the password?"));
  const [, last] = sharedProvider.calls(api_key);
  expect(JSON.stringify(last?.body)).toContain("What is the password?");
  expect(JSON.stringify(last?.body)).not.toContain("swordfish");
});

test("a new conversation reaches the owner's other clients", async () => {
  const person = await signUp(url, "owner");
  await using socket = await person.connect();
  const made = await start(person, { usernames: [agentOf(person)], new: true, title: "Plans" });
  const { params } = await socket.event("events.conversationNew", ({ id }) => id === made.id);
  expect(params).toMatchObject({ kind: "direct", title: "Plans" });
});

test("concurrent new conversations all exist, and one of them is found", async () => {
  const person = await signUp(url, "owner");
  const usernames = [agentOf(person)];
  const made = await Promise.all(
    Array.from({ length: 8 }, () => start(person, { usernames, new: true })),
  );
  const ids = made.map(({ id }) => id);
  expect(new Set(ids).size).toBe(8);
  expect(ids).toContain((await start(person, { usernames })).id);
});

test("a deleted agent closes all of its conversations", async () => {
  const person = await signUp(url, "owner");
  const { username } = await person.call("createAgent", {
    name: "helper",
    kind: "model",
    provider: "claude",
  });
  const chats = [
    await start(person, { usernames: [username] }),
    await start(person, { usernames: [username], new: true, title: "Second" }),
  ];
  const group = await groupOf(person, { username });
  await person.call("deleteAgent", { agent_username: username });
  for (const chat of chats) {
    expect((await failure(say(person, chat, "hello?"))).code).toBe("forbidden");
  }
  const { participants } = await person.call("getChat", { chat_id: group.id });
  expect(participants.map((each) => each.username)).toEqual([person.username]);
  expect((await failure(start(person, { usernames: [username] }))).code).toBe("not_found");
});
