import { afterAll, describe, expect, test } from "bun:test";
import type { Message } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  answerTo,
  failure,
  groupOf,
  outcome,
  RawSocket,
  replyTo,
  type Socket,
  say,
  signUp,
  transports,
} from "@parley/testkit/client.ts";
import { claim, complete, externalAgent } from "@parley/testkit/external-agents.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";

const server = await startServer({ ...noRates, ...serviceKeySetting() });
afterAll(() => server[Symbol.asyncDispose]());
const backend = new Backend(server.url);
const alice = await signUp(server.url, "alice");
const bob = await signUp(server.url, "bob");
const carol = await signUp(server.url, "carol");

const texts = (context: readonly Message[]) => context.map(({ content }) => content);

describe("a token", () => {
  test("is shown once and listed without its value", async () => {
    const owner = await signUp(server.url, "owner");
    const { agent, token_id } = await externalAgent(owner);
    expect(agent.token).toStartWith("pla_");
    const { items } = await owner.call("getAgentTokens");
    expect(items).toMatchObject([{ id: token_id, agent_username: agent.username, name: "" }]);
    expect(JSON.stringify(items)).not.toContain(agent.token);
    expect(await bob.call("getAgentTokens")).toEqual({ items: [] });
  });

  test("lets a program call as the agent, which is online then", async () => {
    const { agent } = await externalAgent(alice);
    expect(await agent.call("getMe")).toMatchObject({ username: agent.username, kind: "agent" });
    const online = async () => {
      const { items } = await alice.call("getMyAgents");
      return items.find(({ username }) => username === agent.username)?.online;
    };
    expect(await online()).toBe(false);
    await using _ = await agent.connect();
    await until(online, "the agent is online");
  });

  test("ends with its sockets and its calls when it is revoked", async () => {
    const { agent, token_id, chat } = await externalAgent(alice);
    await using socket = await agent.connect();
    const polling = agent.call("claimTurn", { wait_seconds: 30 });
    await alice.call("revokeAgentToken", { token_id });
    expect(await polling.catch(() => null)).toBeNull();
    await socket.until(() => socket.closed, "the end of the socket");
    expect(socket.closed?.code).toBe(4401);
    expect(await failure(agent.call("getMe"))).toMatchObject({ status: 401 });
    await using refused = await RawSocket.open(server.url, `/api/ws?token=${agent.token}`);
    expect(refused.answer?.status).toBe(401);
    expect(await failure(alice.call("revokeAgentToken", { token_id }))).toMatchObject({
      status: 404,
    });
    expect((await alice.call("getChat", { chat_id: chat.id })).id).toBe(chat.id);
  });

  test("is for external agents of the caller only, ten for each", async () => {
    const { agent } = await externalAgent(alice);
    const create = (who: typeof alice, agent_username: string) =>
      outcome(who.call("createAgentToken", { agent_username, name: "laptop" }));
    expect(await create(bob, agent.username)).toBe("forbidden");
    expect(await create(alice, `${alice.username}:claude`)).toBe("bad_request");
    expect(await create(alice, `${alice.username}:nobody`)).toBe("not_found");
    for (let n = 1; n < 10; n++) expect(await create(alice, agent.username)).toBe("ok");
    expect(await create(alice, agent.username)).toBe("conflict");
  });

  test("is one of ten at most, also if many are created at once", async () => {
    const { agent } = await externalAgent(alice);
    const create = () =>
      outcome(alice.call("createAgentToken", { agent_username: agent.username }));
    const created = await Promise.all(Array.from({ length: 20 }, create));
    expect(created.filter((each) => each === "ok")).toHaveLength(9);
    expect(created.filter((each) => each === "conflict")).toHaveLength(11);
  });

  test("does not work while its owner is suspended, nor when the agent is deleted", async () => {
    const owner = await signUp(server.url, "owner");
    const { agent } = await externalAgent(owner);
    await using socket = await agent.connect();
    await backend.call("suspendAccount", { username: owner.username });
    await socket.until(() => socket.closed, "the end of the socket");
    expect(await outcome(agent.call("getMe"))).toBe("suspended");
    await backend.call("restoreAccount", { username: owner.username });
    expect(await outcome(agent.call("getMe"))).toBe("ok");
    const other = await externalAgent(alice);
    await using open = await other.agent.connect();
    await alice.call("deleteAgent", { agent_username: other.agent.username });
    await open.until(() => open.closed, "the end of the socket");
    expect(await outcome(other.agent.call("getMe"))).toBe("unauthorized");
  });
});

describe.each(transports)("a turn over %s", (transport) => {
  test("is claimed, written and finished", async () => {
    const { agent, chat } = await externalAgent(alice);
    await using reader = await alice.connect();
    await using program = await agent.via(transport);
    const waiting = program.call("claimTurn", { wait_seconds: 30 });
    const asked = await say(alice, chat, "hello");
    const turn = await waiting;
    if (!turn) throw new Error("there is no turn");
    const { turn_id, answer_id } = turn;
    expect(turn).toMatchObject({ conversation_id: chat.id, message_id: asked.id });
    expect(texts(turn.context)).toEqual(["hello"]);
    expect((await replyTo(reader, asked)).id).toBe(answer_id);
    await program.call("setTurnStatus", { turn_id, text: "reading" });
    await reader.event("events.turnStatus", ({ message_id, text }) => {
      return message_id === answer_id && text === "reading";
    });
    const write = (delta: string, offset: number) =>
      program.call("writeTurn", { turn_id, delta, offset });
    expect(await write("Grüße", 0)).toEqual({ offset: 7 });
    expect(await failure(write("Grüße", 0))).toMatchObject({
      code: "conflict",
      parameters: { offset: 7 },
    });
    expect(await failure(write("", 3))).toMatchObject({ parameters: { offset: 7 } });
    for (const offset of [131_072, Number.MAX_SAFE_INTEGER]) {
      expect(await failure(write("!", offset))).toMatchObject({
        code: "conflict",
        parameters: { offset: 7 },
      });
    }
    expect(await write("", 7)).toEqual({ offset: 7 });
    expect(await write("!", 7)).toEqual({ offset: 8 });
    const usage = { input_tokens: 12, output_tokens: 3 };
    await program.call("finishTurn", { turn_id, status: "complete", usage });
    expect(await answerTo(reader, asked)).toMatchObject({
      id: answer_id,
      content: "Grüße!",
      sender: { username: agent.username },
      turn: { status: "complete", error: null, usage },
    });
    expect(await outcome(write("?", 8))).toBe("conflict");
    const late = program.call("setTurnStatus", { turn_id, text: "x" });
    expect(await outcome(late)).toBe("conflict");
    const receipt = await alice.call("getTurn", { message_id: answer_id });
    expect(receipt).toMatchObject({ status: "complete", context_ids: [asked.id], usage });
  });

  test("that fails shows a sentence", async () => {
    const { agent, chat } = await externalAgent(alice);
    await using reader = await alice.connect();
    await using program = await agent.via(transport);
    const fail = async (finish: object) => {
      const asked = await say(alice, chat, "hello");
      const { turn_id } = await claim(program);
      await program.call("finishTurn", { turn_id, status: "failed", ...finish });
      const { content, turn } = await answerTo(reader, asked);
      return { content, error: turn?.error };
    };
    const message = "The database is closed today.";
    expect(await fail({ error: message })).toEqual({
      content: message,
      error: { code: "agent_failed", message },
    });
    expect((await fail({})).error?.code).toBe("agent_failed");
    // A turn without an answer has failed, whatever the program says.
    expect((await fail({ status: "complete" })).error?.code).toBe("agent_failed");
  });

  test("is none of another agent's business", async () => {
    const [mine, other] = [await externalAgent(alice), await externalAgent(alice)];
    await say(alice, mine.chat, "hello");
    const { turn_id } = await claim(mine.agent);
    await using program = await other.agent.via(transport);
    const calls = [
      () => program.call("writeTurn", { turn_id, delta: "x", offset: 0 }),
      () => program.call("setTurnStatus", { turn_id, text: "x" }),
      () => program.call("finishTurn", { turn_id, status: "complete" }),
    ];
    for (const call of calls) expect(await outcome(call())).toBe("not_found");
    expect(await program.call("claimTurn", { turn_id })).toBeNull();
  });
});

describe("waiting for a turn", () => {
  test("ends without one", async () => {
    const { agent } = await externalAgent(alice);
    expect(await agent.call("claimTurn")).toBeNull();
    expect(await agent.call("claimTurn", { wait_seconds: 0.05 })).toBeNull();
  });

  test("ends with the connection of the client", async () => {
    const { agent, chat } = await externalAgent(alice);
    const gone = await agent.connect();
    gone.send({ method: "turns.claim", params: { wait_seconds: 30 }, id: 1 });
    await gone.close();
    const asked = await say(alice, chat, "hello");
    expect((await claim(agent)).message_id).toBe(asked.id);
  });

  test("gives each turn to one of several programs", async () => {
    const { agent } = await externalAgent(alice);
    const groups = await Promise.all([1, 2, 3].map(() => groupOf(alice, agent)));
    const programs = groups.map(() => agent.call("claimTurn", { wait_seconds: 30 }));
    for (const group of groups) await say(alice, group, `@${agent.username} hello`);
    const claimed = (await Promise.all(programs)).map((turn) => turn?.conversation_id);
    expect(claimed.toSorted()).toEqual(groups.map(({ id }) => id).toSorted());
  });
});

describe("an external agent", () => {
  test("is told of turns on its own sockets, one at a time in a conversation", async () => {
    const { agent, chat } = await externalAgent(carol);
    await using owner = await carol.connect();
    await using program = await agent.connect();
    const [first, second] = [await say(carol, chat, "one"), await say(carol, chat, "two")];
    const requested = (message: Message) =>
      program.event("events.turnRequested", ({ message_id }) => message_id === message.id);
    const { params } = await requested(first);
    expect(texts(params.context)).toEqual(["one"]);
    await complete(agent, await claim(agent, params), "1");
    const { params: next } = await requested(second);
    expect(texts(next.context)).toEqual(["one", "two", "1"]);
    await complete(agent, await claim(agent, next), "2");
    await answerTo(owner, second);
    expect(await owner.settledEvents("events.turnRequested")).toEqual([]);
  });

  test("is told on a new socket also of turns that an earlier one was told of", async () => {
    const { agent, chat } = await externalAgent(carol);
    const group = await groupOf(carol, agent);
    const requested = (socket: Socket, message: Message) =>
      socket.event("events.turnRequested", ({ message_id }) => message_id === message.id);
    const earlier = await agent.connect();
    const first = await say(carol, chat, "one");
    await requested(earlier, first);
    await earlier.close();
    await using program = await agent.connect();
    const second = await say(carol, group, `@${agent.username} two`);
    await requested(program, second);
    await requested(program, first);
  });

  test("is told when it connects of turns that were queued while it was away", async () => {
    const { agent, chat } = await externalAgent(carol);
    const earlier = await agent.connect();
    await earlier.close();
    const asked = await say(carol, chat, "are you there?");
    await using program = await agent.connect();
    const request = await program.event("events.turnRequested");
    expect(request.params.message_id).toBe(asked.id);
  });

  test("gets what its owner can see", async () => {
    const { agent } = await externalAgent(carol);
    const group = await groupOf(carol, agent, bob);
    const hidden = await say(bob, group, "hidden");
    await say(bob, group, "seen");
    await carol.call("deleteMessagesForMe", { chat_id: group.id, message_ids: [hidden.id] });
    await say(bob, group, `@${agent.username} hello`);
    const { context } = await claim(agent);
    expect(texts(context)).toEqual(["seen", `@${agent.username} hello`]);
  });

  test("is stopped as others are, and goes on with the next turn", async () => {
    const { agent, chat } = await externalAgent(carol);
    await using reader = await carol.connect();
    const [asked, later] = [await say(carol, chat, "one"), await say(carol, chat, "two")];
    const { turn_id, answer_id } = await claim(agent);
    await agent.call("writeTurn", { turn_id, delta: "Hel", offset: 0 });
    await carol.call("stopAgentTurn", { message_id: answer_id });
    expect(await answerTo(reader, asked)).toMatchObject({
      content: "Hel",
      turn: { status: "stopped" },
    });
    const late = agent.call("writeTurn", { turn_id, delta: "lo", offset: 3 });
    expect(await outcome(late)).toBe("conflict");
    expect((await claim(agent)).message_id).toBe(later.id);
    expect(await carol.call("stopChatAgents", { chat_id: chat.id })).toMatchObject({ stopped: 1 });
    await carol.call("retryAgentTurn", { message_id: answer_id });
    expect((await claim(agent)).message_id).toBe(asked.id);
  });

  test("keeps to the limits that its owner sets", async () => {
    const { agent, chat } = await externalAgent(carol);
    const group = await groupOf(carol, agent, bob);
    const set = (limits: object) =>
      carol.call("setAgentLimits", { agent_username: agent.username, ...limits });
    await using reader = await carol.connect();
    const refused = async (who: typeof carol, where: { id: string }) => {
      const asked = await say(who, where, `@${agent.username} hello`);
      expect(await agent.call("claimTurn")).toBeNull();
      return (await answerTo(reader, asked)).turn?.error;
    };
    await set({ spenders: "owner" });
    const by = (limit: string) => ({ code: "budget_exceeded", parameters: { limit } });
    expect(await refused(bob, group)).toMatchObject(by("spenders"));
    await set({ turns_per_minute: 1 });
    await say(carol, chat, "hello");
    const { turn_id } = await claim(agent);
    await agent.call("writeTurn", { turn_id, delta: "hi", offset: 0 });
    const usage = { input_tokens: 900, output_tokens: 100 };
    await agent.call("finishTurn", { turn_id, status: "complete", usage });
    expect(await refused(carol, chat)).toMatchObject(by("turns_per_minute"));
    await set({ turns_per_minute: null, daily_tokens: 1000 });
    expect(await refused(carol, chat)).toMatchObject(by("daily_tokens"));
    await set({ daily_tokens: 1001 });
    await say(carol, chat, "hello");
    await complete(agent, await claim(agent), "hi");
    const { items } = await carol.call("getAgentUsage");
    const used = items.filter((row) => row.agent === agent.username);
    expect(used.find((row) => row.conversation_id === chat.id)).toMatchObject({
      turns: 4,
      failures: 2,
      input_tokens: 900,
      output_tokens: 100,
    });
  });

  test("starts no agent, and neither edits an answer before its end nor uploads pictures", async () => {
    const [{ agent }, other] = [await externalAgent(carol), await externalAgent(carol)];
    const group = await groupOf(carol, agent, other.agent);
    await carol.call("setGroupAgentMode", {
      chat_id: group.id,
      agent_username: other.agent.username,
      always_on: true,
    });
    await say(agent, group, `@${other.agent.username} hello`);
    expect(await other.agent.call("claimTurn")).toBeNull();
    await say(carol, group, `@${agent.username} hello`);
    const { turn_id, answer_id } = await claim(agent);
    const edit = () => outcome(agent.call("editMessage", { message_id: answer_id, content: "x" }));
    expect(await edit()).toBe("forbidden");
    await complete(agent, { turn_id }, "answer");
    expect(await edit()).toBe("ok");
    expect(
      await outcome(agent.call("createUpload", { purpose: "picture", name: "a.png", size: 1 })),
    ).toBe("forbidden");
  });

  test("whose answer grows too long is refused", async () => {
    const { agent, chat } = await externalAgent(carol);
    await say(carol, chat, "hello");
    const { turn_id } = await claim(agent);
    const piece = "x".repeat(32_768);
    for (let n = 0; n < 4; n++) {
      await agent.call("writeTurn", { turn_id, delta: piece, offset: n * piece.length });
    }
    const more = agent.call("writeTurn", { turn_id, delta: "x", offset: 4 * piece.length });
    expect(await outcome(more)).toBe("payload_too_large");
  });

  test("without a program fails within seconds, and says so", async () => {
    const { agent, chat } = await externalAgent(carol);
    await using reader = await carol.connect();
    const asked = await say(carol, chat, "hello");
    expect(await server.moveClockDuring(answerTo(reader, asked), 500)).toMatchObject({
      content: expect.stringContaining("not connected"),
      turn: { status: "failed", error: { code: "agent_offline" } },
    });
    expect(await agent.call("claimTurn")).toBeNull();
  });

  test("whose program stops calling is interrupted with its text so far", async () => {
    const { agent, chat } = await externalAgent(carol);
    await using reader = await carol.connect();
    const asked = await say(carol, chat, "hello");
    const { turn_id } = await claim(agent);
    await agent.call("writeTurn", { turn_id, delta: "Hel", offset: 0 });
    expect(await server.moveClockDuring(answerTo(reader, asked), 500)).toMatchObject({
      content: "Hel",
      turn: { status: "failed", error: { code: "interrupted" } },
    });
    expect(await outcome(agent.call("finishTurn", { turn_id, status: "complete" }))).toBe(
      "conflict",
    );
    expect(await agent.call("claimTurn")).toBeNull();
  });
});
