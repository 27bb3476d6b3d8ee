import { afterAll, describe, expect, test } from "bun:test";
import type { OutputOf } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  agentOf,
  answerTo,
  failure,
  groupOf,
  type Person,
  people,
  post,
  say,
  search,
  signUp,
  transports,
} from "@parley/testkit/client.ts";
import { operatorAt } from "@parley/testkit/operators.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";

const server = await startServer({
  ...noRates,
  ...serviceKeySetting(),
  PARLEY_OPERATORS: "olga, oscar",
});
afterAll(() => server[Symbol.asyncDispose]());
const { url } = server;
const backend = new Backend(url);

type Overview = Extract<OutputOf<"getUpdates">, { ahead: unknown }>;

const password = "correct horse battery";
const DELETED = "Deleted account";
const direct = (one: Person, other: { username: string }) =>
  one.call("startChat", { usernames: [other.username] });
const importFrom = (chat: { id: string }, { username: sender }: { username: string }) =>
  backend.call("importMessages", {
    chat_id: chat.id,
    messages: [
      { sender, content: "imported", created_at: "2020-01-01T00:00:00Z", client_msg_id: sender },
    ],
  });
const deletedAccount = ({ username }: { username: string }) => ({
  username,
  kind: "human",
  display_name: DELETED,
  version: expect.any(Number),
  deleted: true,
});

describe.each(transports)("over %s", (transport) => {
  test("deleteMe ends sessions and sockets, and the username stays taken", async () => {
    const alice = await signUp(url, "alice");
    const { username } = alice;
    await using other = await alice.connect();
    await using caller = await alice.via(transport);
    const call = caller.call("deleteMe", { password });
    if (transport === "HTTP") await call;
    // The socket closes with all others: the reply may be lost.
    else await call.catch(() => undefined);
    await other.until(() => other.closed, "close");
    expect(other.closed?.code).toBe(4401);
    expect((await post(url, "getMe", {}, alice.token)).status).toBe(401);
    const signIn = await post(url, "signIn", { username, password });
    const unknown = await post(url, "signIn", { username: "nobody_at_all", password });
    expect([signIn.status, signIn.body]).toEqual([401, unknown.body]);
    expect((await post(url, "signUp", { username, password })).status).toBe(409);
  });

  test("deleteMe needs the right password", async () => {
    const alice = await signUp(url, "alice");
    await using caller = await alice.via(transport);
    const missing = await failure(caller.call("deleteMe", { username: alice.username }));
    expect(missing.code).toBe("bad_request");
    expect(missing.parameters?.fields).toEqual({ password: "is required" });
    const wrong = await failure(caller.call("deleteMe", { password: "not this one" }));
    expect([wrong.code, wrong.message]).toEqual(["forbidden", "forbidden: the password is wrong"]);
    expect(await caller.call("getMe")).toMatchObject(alice.account);
  });

  test("eraseAccount is 404 for nobody, agents and erased accounts, and 409 for operators", async () => {
    const olga = await operatorNamed("olga");
    await operatorNamed("oscar");
    await using operator = await olga.via(transport);
    const erase = (username: string) => operator.call("eraseAccount", { username });
    const code = async (username: string) => (await failure(erase(username))).code;
    expect(await code("nobody_here")).toBe("not_found");
    expect(await code("olga:claude")).toBe("not_found");
    expect(await code("oscar")).toBe("conflict");
    const victim = await signUp(url, "victim");
    await erase(victim.username);
    expect(await code(victim.username)).toBe("not_found");
    for (const name of ["suspendAccount", "restoreAccount"] as const) {
      const again = await failure(operator.call(name, { username: victim.username }));
      expect(again.code).toBe("not_found");
    }
    const { items } = await operator.call("getAccounts", { query: victim.username });
    expect(items).toEqual([]);
    const log = await operator.call("getAuditLog", { account: victim.username });
    expect(log.items[0]).toMatchObject({ action: "account_erased", operator: "olga" });
  });
});

const operators = new Map<string, Person>();
async function operatorNamed(name: string): Promise<Person> {
  const known = operators.get(name) ?? (await operatorAt(server, name));
  operators.set(name, known);
  return known;
}

describe("what others see of a deleted account", () => {
  test("its messages stay, under another name, and clients learn it at once", async () => {
    const [alice, bob] = await people(url, "alice", "bob");
    const chat = await groupOf(alice, bob);
    const message = await say(alice, chat, "I was here");
    await using reader = await bob.connect();
    await alice.call("deleteMe", { password });
    const { params } = await reader.event(
      "events.accountUpdated",
      ({ username }) => username === alice.username,
    );
    expect(params).toEqual(deletedAccount(alice) as never);
    const shown = await bob.call("getMessage", { message_id: message.id });
    expect(shown).toEqual({ ...message, sender: deletedAccount(alice) as never });
    expect(await bob.call("getUser", { username: alice.username })).toEqual(
      deletedAccount(alice) as never,
    );
    const named = await bob.call("getUsers", { usernames: [alice.username] });
    expect(named.items).toHaveLength(1);
    expect((await bob.call("getUsers", { query: alice.username })).items).toEqual([]);
    expect((await bob.call("getUsers", { query: "Deleted" })).items).toEqual([]);
  });

  test("clients learn it once for each account, also in groups that it had left", async () => {
    const [alice, bob, carol] = await people(url, "alice", "bob", "carol");
    const [left, shared] = [await groupOf(bob, alice, carol), await groupOf(alice, bob)];
    const agent_username = agentOf(alice);
    for (const chat of [left, shared]) {
      await alice.call("addGroupAgent", { chat_id: chat.id, agent_username });
    }
    await alice.call("leaveChat", { chat_id: left.id });
    await using member = await bob.connect();
    await using formerly = await carol.connect();
    await alice.call("deleteMe", { password });
    for (const socket of [member, formerly]) {
      for (const username of [alice.username, agent_username]) {
        await socket.event("events.accountUpdated", (params) => params.username === username);
      }
      const events = await socket.settledEvents("events.accountUpdated");
      expect(events.map(({ params }) => params.username).toSorted()).toEqual([
        alice.username,
        agent_username,
      ]);
    }
  });

  test("clients that were away learn it from accounts_since", async () => {
    const [alice, bob, carol] = await people(url, "alice", "bob", "carol");
    const [left, shared] = [await groupOf(carol, alice), await groupOf(alice, bob)];
    await alice.call("createIncomingHook", { chat_id: shared.id, name: "alerts" });
    await alice.call("leaveChat", { chat_id: left.id });
    const since = async (person: Person, accounts_since: number) =>
      (await person.call("getUpdates", { accounts_since })) as Overview;
    const { accounts_seq } = await since(bob, 0);
    await using watcher = await bob.connect();
    await alice.call("deleteMe", { password });
    await watcher.event("events.conversationUpdated", ({ participants }) =>
      participants.every(({ username }) => username !== alice.username),
    );
    const names = async (person: Person) =>
      (await since(person, accounts_seq)).accounts.filter(({ deleted }) => deleted);
    expect(await names(bob)).toEqual([
      deletedAccount(alice) as never,
      { ...deletedAccount(alice), username: `${alice.username}:alerts`, kind: "agent" } as never,
    ]);
    expect(await names(carol)).toEqual([deletedAccount(alice) as never]);
  });

  test("it leaves groups, and its admin's role passes on", async () => {
    const [alice, bob, carol] = await people(url, "alice", "bob", "carol");
    const chat = await groupOf(alice, bob, carol);
    const agent = agentOf(alice);
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: agent });
    await using reader = await bob.connect();
    await alice.call("deleteMe", { password });
    const { params } = await reader.event("events.conversationUpdated", ({ participants }) =>
      participants.every(({ username }) => username !== alice.username),
    );
    expect(params.admin).toBe(bob.username);
    expect(params.participants.map(({ username }) => username)).toEqual([
      bob.username,
      carol.username,
    ]);
    expect(params.changes?.map(({ kind }) => kind)).toEqual(["left", "admin_changed"]);
    expect(await failure(groupOf(bob, alice))).toMatchObject({ code: "not_found" });
    const again = { chat_id: chat.id, usernames: [alice.username] };
    expect(await failure(bob.call("addChatMembers", again))).toMatchObject({ code: "not_found" });
  });

  test("a direct conversation stays readable, and nobody can write to it", async () => {
    const [alice, bob] = await people(url, "alice", "bob");
    const chat = await direct(alice, bob);
    const hello = await say(alice, chat, "hello Bob");
    const own = await say(bob, chat, "hello Alice");
    const kept = { message_id: hello.id, emoji: "👍" };
    await bob.call("addReaction", kept);
    await using reader = await bob.connect();
    await alice.call("deleteMe", { password });
    await reader.event("events.accountUpdated");
    const closed = async () => {
      const outcome = await say(bob, chat, "are you there?").then(() => null, String);
      return outcome?.includes("the other account of this conversation is deleted");
    };
    await until(closed, "the conversation is closed");
    const { items } = await bob.call("getChatHistory", { chat_id: chat.id });
    expect(items.slice(0, 2).map(({ content }) => content)).toEqual(["hello Bob", "hello Alice"]);
    const { participants } = await bob.call("getChat", { chat_id: chat.id });
    expect(participants).toContainEqual(deletedAccount(alice) as never);
    const writes = [
      () => bob.call("editMessage", { message_id: own.id, content: "goodbye" }),
      () => bob.call("addReaction", { message_id: hello.id, emoji: "🎉" }),
      () => bob.call("setMessageReaction", { message_id: hello.id, emoji: "🎉" }),
      () => bob.call("sendComponentAction", { chat_id: chat.id, message_id: own.id, action: "go" }),
      () => bob.call("sendChatAction", { chat_id: chat.id, action: "typing" }),
      () => importFrom(chat, bob),
      () => importFrom(chat, alice),
    ];
    for (const write of writes) expect((await failure(write())).code).toBe("forbidden");
    // What one has written oneself can still be deleted.
    await bob.call("removeReaction", kept);
    await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [own.id] });
    expect(await failure(direct(bob, alice))).toMatchObject({ code: "not_found" });
  });

  test("with messages: true its messages and those of its agents disappear, also from search", async () => {
    const [alice, bob] = await people(url, "alice", "bob");
    const chat = await groupOf(alice, bob);
    await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: agentOf(alice) });
    await using reader = await bob.connect();
    const kept = await say(bob, chat, "xylophone of Bob");
    const asked = await say(alice, chat, `@${agentOf(alice)} xylophone?`);
    const { id: answer } = await answerTo(reader, asked);
    const [left, carol] = [await groupOf(bob, alice), await signUp(url, "carol")];
    await bob.call("addChatMembers", { chat_id: left.id, usernames: [carol.username] });
    const before = await say(alice, left, "xylophone before leaving");
    await alice.call("leaveChat", { chat_id: left.id });
    await alice.call("deleteMe", { password, messages: true });
    for (const id of [asked.id, answer, before.id]) {
      await reader.event("events.messageDeleted", ({ ids }) => ids.includes(id));
    }
    const { items } = await bob.call("getChatHistory", { chat_id: chat.id });
    expect(items.map(({ id }) => id)).toEqual([kept.id]);
    const found = await search(bob, { query: "xylophone" });
    expect(found.items.map(({ message }) => message.id)).toEqual([kept.id]);
  });

  test("its running agents stop, and it is removed from what others wait for", async () => {
    const [alice, bob] = await people(url, "alice", "bob");
    const chat = await groupOf(bob, alice);
    await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: agentOf(alice) });
    await using reader = await bob.connect();
    const asked = await say(bob, chat, `@${agentOf(alice)} slow`);
    await reader.event("events.messageDelta");
    await alice.call("deleteMe", { password });
    expect(await answerTo(reader, asked)).toMatchObject({ turn: { status: "stopped" } });
    const mention = await say(bob, chat, `@${agentOf(alice)} hello`);
    expect(mention.turn).toBeNull();
  });
});

describe("accounts without a password", () => {
  test("confirm with their username", async () => {
    const external_id = `no-password-${process.pid}`;
    const { items } = await backend.call("upsertUsers", { users: [{ external_id }] });
    const username = items[0]?.account.username ?? "";
    const person = backend.as(username);
    const wrong = await failure(person.call("deleteMe", { username: "somebody_else" }));
    expect(wrong.parameters?.fields).toEqual({
      username: "must be your own username, to confirm the deletion",
    });
    await person.call("deleteMe", { username });
    expect(await failure(person.call("getMe"))).toMatchObject({ code: "bad_request" });
    for (const who of [{ username }, { external_id }]) {
      expect(await failure(backend.call("issueToken", who))).toMatchObject({ code: "not_found" });
    }
    // The product's id is free: the product may create the person again, under another username.
    const again = await backend.call("upsertUsers", { users: [{ external_id }] });
    expect(again.items).toMatchObject([{ external_id, created: true }]);
    expect(again.items[0]?.account.username).not.toBe(username);
  });
});

test("the last operator who can sign in cannot delete their account", async () => {
  await using own = await startServer({
    ...noRates,
    ...serviceKeySetting(),
    PARLEY_OPERATORS: "first, second, absent",
  });
  const first = await operatorAt(own, "first");
  const refused = await failure(first.call("deleteMe", { password }));
  expect(refused.code).toBe("conflict");
  expect(refused.message).toContain("make another person an operator first");
  const second = await operatorAt(own, "second");
  await first.call("deleteMe", { password });
  expect((await failure(second.call("deleteMe", { password }))).code).toBe("conflict");
  const erase = new Backend(own.url).call("eraseAccount", { username: "second" });
  expect((await failure(erase)).code).toBe("conflict");
});
