import { afterAll, describe, expect, test } from "bun:test";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  agentOf,
  answerTo,
  failure,
  groupOf,
  type Person,
  pagesOf,
  post,
  RawSocket,
  replyTo,
  say,
  signUp,
  TIMESTAMP,
  transports,
} from "@parley/testkit/client.ts";
import { operatorAt } from "@parley/testkit/operators.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { newKey } from "@parley/testkit/turns.ts";

const provider = await startSharedProvider();
const server = await startServer({
  ...noRates,
  ...serviceKeySetting(),
  ...providersAt(provider.url, {}),
  PARLEY_OPERATORS: "olga, oscar",
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});
const backend = new Backend(server.url);
const olga = await operatorAt(server, "olga");

const PASSWORD = "correct horse battery";
const signIn = ({ username }: Person) =>
  post(server.url, "signIn", { username, password: PASSWORD });
const suspend = ({ username }: Person, caller: Pick<Person, "call"> = olga) =>
  caller.call("suspendAccount", { username });
const restore = ({ username }: Person) => olga.call("restoreAccount", { username });

test("nobody signs up under the name of an operator, whether the account exists or not", async () => {
  const password = "correct horse battery";
  for (const username of ["olga", "oscar", "OSCAR"]) {
    const { status, body } = await post(server.url, "signUp", { username, password });
    expect({ status, body }).toMatchObject({
      status: 409,
      body: { description: "conflict: the username is taken" },
    });
  }
});

describe.each(transports)("over %s", (transport) => {
  test("getAccounts lists people, with what the product and operators know", async () => {
    await using operator = await olga.via(transport);
    const external_id = `product-${transport}`;
    const user = { external_id, display_name: "Quincy Q", metadata: { plan: "gold" } };
    const { items } = await backend.call("upsertUsers", { users: [user] });
    const username = items[0]?.account.username ?? "";
    const found = await operator.call("getAccounts", { query: external_id });
    expect(found).toEqual({
      items: [
        {
          username,
          display_name: "Quincy Q",
          external_id,
          metadata: { plan: "gold" },
          created_at: expect.stringMatching(TIMESTAMP),
          last_active_at: null,
          suspended_at: null,
          is_operator: false,
        },
      ],
      next_cursor: null,
    });
    const named = await operator.call("getAccounts", { query: "olg" });
    expect(named.items).toMatchObject([
      { username: "olga", is_operator: true, last_active_at: expect.stringMatching(TIMESTAMP) },
    ]);
    const pages = await pagesOf((place) => operator.call("getAccounts", { limit: 1, ...place }));
    const usernames = pages.flat().map((each) => each.username);
    expect(usernames).toEqual([...new Set(usernames)].sort());
    expect(usernames).toContain(username);
    expect(usernames.join()).not.toContain(":");
  });

  test("suspendAccount and restoreAccount change what a person can do", async () => {
    await using operator = await olga.via(transport);
    const alice = await signUp(server.url, "alice");
    const { username } = alice;
    const suspended = await operator.call("suspendAccount", { username });
    expect(suspended).toMatchObject({
      username,
      suspended_at: expect.stringMatching(TIMESTAMP),
    });
    expect(await operator.call("suspendAccount", { username })).toEqual(suspended);
    const listed = await operator.call("getAccounts", { query: username, suspended: true });
    expect(listed.items).toEqual([suspended]);
    const restored = await operator.call("restoreAccount", { username });
    expect(restored).toEqual({ ...suspended, suspended_at: null });
    expect(await operator.call("restoreAccount", { username })).toEqual(restored);
    const entries = await olga.call("getAuditLog", { account: username });
    expect(entries.items.map(({ action, operator: by }) => [action, by])).toEqual([
      ["account_restored", "olga"],
      ["account_suspended", "olga"],
      ["sign_up", null],
    ]);
  });

  test("suspendAccount is 404 for nobody and agents, and 409 for operators", async () => {
    await using operator = await olga.via(transport);
    await operatorAt(server, "oscar").catch(() => undefined);
    const code = async (username: string) =>
      (await failure(operator.call("suspendAccount", { username }))).code;
    expect(await code("nobody_here")).toBe("not_found");
    expect(await code("olga:claude")).toBe("not_found");
    expect(await code("oscar")).toBe("conflict");
    expect(await code("olga")).toBe("conflict");
  });

  test("getStatistics counts", async () => {
    await using operator = await olga.via(transport);
    const before = await operator.call("getStatistics");
    const alice = await signUp(server.url, "alice");
    await say(alice, await groupOf(alice), "hello");
    const { people, active_day, active_month, conversations, messages, version } =
      await operator.call("getStatistics");
    expect({ people, active_day, active_month, conversations }).toEqual({
      people: before.people + 1,
      active_day: before.active_day + 1,
      active_month: before.active_month + 1,
      conversations: before.conversations + 1,
    });
    expect(messages).toBeGreaterThan(before.messages);
    const health = (await (await fetch(`${server.url}/health`)).json()) as { version: string };
    expect(version).toBe(health.version);
  });

  test("getMe tells operators, and nobody else, that they are operators", async () => {
    const alice = await signUp(server.url, "alice");
    await using operator = await olga.via(transport);
    await using caller = await alice.via(transport);
    expect(await operator.call("getMe")).toMatchObject({ ...olga.account, is_operator: true });
    expect(await caller.call("getMe")).toMatchObject(alice.account);
    expect(await caller.call("getUser", { username: "olga" })).toEqual(olga.account);
  });

  test("people who are not operators get 403", async () => {
    const alice = await signUp(server.url, "alice");
    const { username } = alice;
    await using caller = await alice.via(transport);
    for (const call of [
      () => caller.call("getAccounts"),
      () => caller.call("suspendAccount", { username }),
      () => caller.call("restoreAccount", { username }),
      () => caller.call("getStatistics"),
    ]) {
      expect((await failure(call())).code).toBe("forbidden");
    }
  });
});

describe("a suspended account", () => {
  test("loses its sockets at once, and its tokens say why", async () => {
    const bob = await signUp(server.url, "bob");
    const other = await signUp(server.url, "other");
    await using socket = await bob.connect();
    await using second = await bob.connect();
    await using theirs = await other.connect();
    await suspend(bob, backend);
    for (const each of [socket, second]) {
      await each.until(() => each.closed, "close");
      expect(each.closed?.code).toBe(4401);
    }
    expect(await theirs.call("getMe")).toMatchObject(other.account);
    const { status, body } = await post(server.url, "getMe", {}, bob.token);
    expect(status).toBe(403);
    expect(body).toMatchObject({
      code: "suspended",
      description: "suspended: this account is suspended",
    });
    await using refused = await RawSocket.open(server.url, `/api/ws?token=${bob.token}`);
    expect(refused.answer).toMatchObject({ status: 403 });
    expect(refused.answer?.body).toContain("suspended: this account is suspended");
  });

  test("cannot sign in, be issued a token or be acted for, until it is restored", async () => {
    const carol = await signUp(server.url, "carol");
    const { username } = carol;
    await suspend(carol);
    const { status, body } = await signIn(carol);
    expect([status, !body.ok && body.code]).toEqual([403, "suspended"]);
    expect(await failure(backend.call("issueToken", { username }))).toMatchObject({
      code: "suspended",
    });
    expect(await failure(backend.as(username).call("getMe"))).toMatchObject({ code: "suspended" });
    const wrong = await post(server.url, "signIn", { username, password: "a wrong password" });
    expect(wrong.status).toBe(401);
    await restore(carol);
    expect((await post(server.url, "getMe", {}, carol.token)).status).toBe(401);
    expect((await signIn(carol)).status).toBe(200);
    expect(await backend.as(username).call("getMe")).toMatchObject(carol.account);
  });

  test("has no running or waiting turns, and its agents answer nobody", async () => {
    const [dora, erin] = [await signUp(server.url, "dora"), await signUp(server.url, "erin")];
    const key = await newKey(dora);
    const agent = agentOf(dora);
    const chat = await groupOf(erin, dora);
    await dora.call("addGroupAgent", {
      chat_id: chat.id,
      agent_username: agent,
      always_on: true,
    });
    await using reader = await erin.connect();
    const asked = await say(erin, chat, "first");
    const call = await provider.nextCall(key);
    await call.sendText("Hel");
    const { id } = await replyTo(reader, asked);
    await reader.event("events.messageDelta", (delta) => delta.id === id);
    await say(erin, chat, "second, which waits");
    await suspend(dora);
    await call.request.closed;
    expect(await answerTo(reader, asked)).toMatchObject({
      content: "Hel",
      turn: { status: "stopped" },
    });
    const none = { stopped: 0, cancelled: 0 };
    expect(await erin.call("stopChatAgents", { chat_id: chat.id })).toEqual(none);
    await say(erin, chat, "third, to nobody in particular");
    expect(await erin.call("stopChatAgents", { chat_id: chat.id })).toEqual(none);
    const mention = await say(erin, chat, `@${agent} are you there?`);
    expect(await answerTo(reader, mention)).toMatchObject({
      content: "The account of this agent's owner is suspended.",
      turn: { status: "failed", error: { code: "agent_suspended" } },
    });
    await restore(dora);
    await say(erin, chat, "fourth");
    const again = await provider.nextCall(key);
    await again.complete();
  });
});
