import { afterAll, describe, expect, test } from "bun:test";
import type { Conversation, Message, TurnReceipt } from "@parley/protocol";
import {
  agentOf,
  answerTo,
  groupOf,
  type Person,
  replyTo,
  type Socket,
  say,
  signUp,
  TIMESTAMP,
  transports,
} from "@parley/testkit/client.ts";
import {
  answers,
  beginAnswer,
  cutsAfter,
  cutsAfterHead,
  cutsBeforeHead,
  endsWith,
  fails,
  reportsErrorAfter,
  sendsGarbageAfter,
  sendsPage,
  spendsAll,
  stopsShortAfter,
  thinksThenStops,
} from "@parley/testkit/provider-responders.ts";
import type { Responder } from "@parley/testkit/provider-server.ts";
import { onSeveralNodes } from "@parley/testkit/server.ts";
import { newKey, startTurns } from "@parley/testkit/turns.ts";

/** Ends the stream in the middle of a tool call. */
const breaksOffCall: Responder = async (exchange) => {
  const { frames, write, end } = exchange;
  await beginAnswer(exchange);
  const call = frames.toolCalls([{ name: "current_time", input: { time_zone: "UTC" } }]);
  await write(
    call
      .split(/(?<=\n\n)/)
      .slice(0, 3)
      .join(""),
  );
  await end();
};

const turns = await startTurns();
const { sharedProvider, server, alice, bob, carol, agentGroup, startAnswer } = turns;
afterAll(() => turns[Symbol.asyncDispose]());

describe.each(transports)("getTurn over %s", (transport) => {
  test("returns the receipt of a turn, with the usage only for the owner", async () => {
    await using group = await agentGroup();
    const { chat, key, reader, ask, agent } = group;
    sharedProvider.respond(key, fails(500), answers("Hello."));
    const trigger = await ask("hello");
    const final = await answerTo(reader, trigger);
    const receipt: TurnReceipt & { duration_ms: number } = {
      message_id: final.id,
      conversation_id: chat.id,
      agent: { ...final.sender, username: agent },
      triggered_by: trigger.id,
      model: "model-a",
      status: "complete",
      error: null,
      context_ids: [trigger.id],
      tries: 2,
      started_at: final.created_at,
      finished_at: final.finalized_at,
      first_token_ms: expect.any(Number),
      duration_ms: Date.parse(final.finalized_at ?? "") - Date.parse(final.created_at),
      usage: { input_tokens: 25, output_tokens: 15 },
      rounds: [
        {
          duration_ms: expect.any(Number),
          usage: { input_tokens: 25, output_tokens: 15 },
          calls: [],
        },
      ],
    };
    const seenBy = async (person: Person) => {
      await using caller = await person.via(transport);
      return await caller.call("getTurn", { message_id: final.id });
    };
    const seen = await seenBy(alice);
    expect(seen).toEqual(receipt);
    expect(seen.first_token_ms).toBeWithin(0, receipt.duration_ms + 1);
    for (const person of [bob, carol]) {
      const rounds = receipt.rounds.map((round) => ({ ...round, usage: null }));
      expect(await seenBy(person)).toEqual({ ...receipt, usage: null, rounds });
    }
  });

  test("works while the answer streams", async () => {
    await using group = await agentGroup();
    const { trigger, message } = await startAnswer(group);
    await using caller = await alice.via(transport);
    expect(await caller.call("getTurn", { message_id: message.id })).toMatchObject({
      status: "streaming",
      triggered_by: trigger.id,
      context_ids: [trigger.id],
      tries: 1,
      finished_at: null,
      duration_ms: null,
      usage: null,
    });
  });

  test("shows that a turn made no call", async () => {
    await using group = await agentGroup();
    const { reader, ask } = group;
    await alice.call("removeAgentKey", { provider: "claude" });
    const { id } = await answerTo(reader, await ask("hello"));
    await using caller = await alice.via(transport);
    expect(await caller.call("getTurn", { message_id: id })).toMatchObject({
      status: "failed",
      error: { code: "key_missing" },
      context_ids: [],
      tries: 0,
      first_token_ms: null,
      usage: null,
    });
  });
});

test("getAgentUsage is the sum of the receipts, however the turns ended", async () => {
  const owner = await signUp(server.url, "owner");
  const key = await newKey(owner);
  await using socket = await owner.connect();
  const chats = [
    await groupOf(owner, bob, { username: agentOf(owner) }),
    await groupOf(owner, carol, { username: agentOf(owner) }),
  ];
  const ask = async (index: number) => {
    const chat = chats[index] as Conversation;
    return say(owner, chat, `@${agentOf(owner)} hello`);
  };
  sharedProvider.respond(key, answers("One."), fails(401), answers("Three."), fails(400));
  const ended: Message[] = [];
  for (let turn = 0; turn < 4; turn++) ended.push(await answerTo(socket, await ask(turn % 2)));
  sharedProvider.respond(key);
  for (const [end, words] of [
    ["stop", "Hel"],
    ["cut", "Hel"],
    ["stop", ""],
  ] as const) {
    const trigger = await ask(0);
    const call = await sharedProvider.nextCall(key);
    const { id } = await replyTo(socket, trigger);
    if (words !== "") {
      await call.sendText(words);
      await socket.event("events.messageDelta", (delta) => delta.id === id);
    }
    if (end === "stop") await owner.call("stopAgentTurn", { message_id: id });
    else call.disconnect();
    ended.push(await answerTo(socket, trigger));
  }
  const sums = new Map<string, object>();
  for (const { id, conversation_id, created_at } of ended) {
    const { status, usage } = await owner.call("getTurn", { message_id: id });
    const day = created_at.slice(0, 10);
    const before = { turns: 0, failures: 0, input_tokens: 0, output_tokens: 0 };
    const sum = { ...before, ...sums.get(conversation_id) };
    sums.set(conversation_id, {
      agent: agentOf(owner),
      conversation_id,
      day,
      turns: sum.turns + 1,
      failures: sum.failures + (status === "failed" ? 1 : 0),
      input_tokens: sum.input_tokens + (usage?.input_tokens ?? 0),
      output_tokens: sum.output_tokens + (usage?.output_tokens ?? 0),
    });
  }
  const { items } = await owner.call("getAgentUsage");
  expect(items).toEqual([...sums.values()] as typeof items);
  expect(items.reduce((sum, { turns }) => sum + turns, 0)).toBe(7);
  // The usage of interrupted calls is estimated.
  for (const { id, turn } of ended.slice(4)) {
    const { usage } = await owner.call("getTurn", { message_id: id });
    expect(usage?.input_tokens).toBeGreaterThan(0);
    expect(turn?.usage).toEqual(usage);
  }
});

describe("a turn that fails", () => {
  const raw = "raw words of the provider";
  type Case = { responders: Responder[]; code: string; calls: number };
  const cases: Record<string, Case> = {
    "a rejected key": { responders: [fails(401)], code: "key_rejected", calls: 1 },
    "a key without permission": { responders: [fails(403)], code: "key_rejected", calls: 1 },
    "a rate limit": { responders: [fails(429)], code: "provider_rate_limited", calls: 3 },
    "an internal error": { responders: [fails(500)], code: "provider_unavailable", calls: 3 },
    "an overload": { responders: [fails(529)], code: "provider_unavailable", calls: 3 },
    "a bad gateway": { responders: [fails(502)], code: "provider_unavailable", calls: 3 },
    "a connection that breaks at once": {
      responders: [cutsBeforeHead],
      code: "provider_unavailable",
      calls: 3,
    },
    "a connection that breaks before the first text": {
      responders: [cutsAfterHead],
      code: "provider_unavailable",
      calls: 3,
    },
    "a stream that ends without an answer": {
      responders: [stopsShortAfter()],
      code: "provider_unavailable",
      calls: 3,
    },
    "garbage instead of a stream": {
      responders: [sendsGarbageAfter()],
      code: "provider_unavailable",
      calls: 3,
    },
    "a web page instead of a stream": {
      responders: [sendsPage],
      code: "provider_unavailable",
      calls: 3,
    },
    "a redirect": {
      responders: [fails(302, { headers: { location: "http://127.0.0.1:1/" } })],
      code: "provider_unavailable",
      calls: 1,
    },
    "a rejected request": { responders: [fails(400)], code: "provider_refused", calls: 1 },
    "an unknown model": { responders: [fails(404)], code: "provider_refused", calls: 1 },
    "a refused answer": {
      responders: [endsWith("refused")],
      code: "provider_refused",
      calls: 1,
    },
    "an answer without text": { responders: [answers()], code: "provider_unavailable", calls: 1 },
    "an answer that reaches its limit before any text": {
      responders: [endsWith("length")],
      code: "provider_unavailable",
      calls: 1,
    },
    "a conversation that is too long": {
      responders: [fails(400, { message: `prompt is too long, ${raw}` })],
      code: "context_too_long",
      calls: 1,
    },
    "a request that is too large": { responders: [fails(413)], code: "context_too_long", calls: 1 },
    "an error after another": {
      responders: [fails(503), fails(401)],
      code: "key_rejected",
      calls: 2,
    },
  };

  /** Runs all cases concurrently, each with its own owner, because retries take time. */
  async function runCases(provider: string) {
    const run = async ([name, { responders, code, calls }]: [string, Case]) => {
      const owner = await signUp(server.url, "unlucky");
      const key = await newKey(owner, provider);
      sharedProvider.respond(key, ...responders);
      await using socket = await owner.connect();
      const chat = await owner.call("startChat", { usernames: [agentOf(owner, provider)] });
      const final = await answerTo(socket, await say(owner, chat, "hello"));
      const placeholder = await replyTo(socket, { id: final.turn?.triggered_by ?? "" });
      // A node that has just begun to follow a conversation may miss events that are not stored.
      if (!onSeveralNodes) await socket.event("events.typing", ({ is_typing }) => !is_typing);
      const receipt = await owner.call("getTurn", { message_id: final.id });
      return [name, { final, placeholder, receipt, key, socket, code, calls }] as const;
    };
    return new Map(await server.moveClockDuring(Promise.all(Object.entries(cases).map(run))));
  }

  describe.each(["claude", "gpt"])("with %s", (provider) => {
    let outcomes: ReturnType<typeof runCases> | undefined;

    test.each(Object.keys(cases))(
      "because of %s ends with an error message for people",
      async (name) => {
        outcomes ??= runCases(provider);
        const failed = (await outcomes).get(name);
        if (!failed) throw new Error(`there is no case ${name}`);
        const { final, placeholder, receipt, key, socket, code, calls } = failed;
        expect(final).toMatchObject({
          id: placeholder.id,
          finalized_at: expect.stringMatching(TIMESTAMP),
          turn: { status: "failed", error: { code } },
        });
        expect(final.turn?.error?.message).toMatch(/^[A-Z].{20,}\.$/);
        expect(final.content).toBe(final.turn?.error?.message ?? "");
        expect(sharedProvider.calls(key)).toHaveLength(calls);
        expect(receipt.tries).toBe(calls);
        expect(socket.eventsNamed("events.messageDelta").map(({ params }) => params)).toEqual([
          { id: final.id, delta: final.content, offset: Buffer.byteLength(final.content) },
        ]);
        expect(JSON.stringify(socket.events)).not.toContain(raw);
        expect(JSON.stringify(socket.events)).not.toContain(key);
      },
    );
  });

  test.each(["claude", "gpt"])("after its first text is not retried with %s", async (provider) => {
    await using group = await agentGroup({ provider });
    const { key, reader, ask } = group;
    const received = Promise.withResolvers<void>();
    const broken: Responder[] = [
      cutsAfter(received.promise, "Hello 🦜"),
      stopsShortAfter("Hello 🦜"),
      sendsGarbageAfter("Hello 🦜"),
      reportsErrorAfter("overloaded_error", "Hello 🦜"),
    ];
    for (const [index, responder] of broken.entries()) {
      sharedProvider.respond(key, responder);
      const trigger = await ask("hello");
      const { id } = await replyTo(reader, trigger);
      await reader.event("events.messageDelta", (delta) => delta.id === id);
      received.resolve();
      const final = await answerTo(reader, trigger);
      expect(final).toMatchObject({
        content: "Hello 🦜",
        turn: { status: "failed", error: { code: "provider_unavailable" } },
      });
      expect(final.turn?.error?.message).not.toContain(raw);
      expect(sharedProvider.calls(key)).toHaveLength(index + 1);
    }
  });

  test.each([
    ["claude", "a thought", thinksThenStops],
    ["claude", "a part of a call", breaksOffCall],
    ["gpt", "a thought", thinksThenStops],
    ["gpt", "a part of a call", breaksOffCall],
  ] as const)(
    "with %s after %s, which nobody sees, is not retried, and counts its tokens",
    async (provider, _, responder) => {
      await using group = await agentGroup({ provider });
      const { key, reader, ask } = group;
      sharedProvider.respond(key, responder);
      const final = await answerTo(reader, await ask("hello"));
      expect(final.turn).toMatchObject({
        status: "failed",
        error: { code: "provider_unavailable" },
        usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
      });
      expect(sharedProvider.calls(key)).toHaveLength(1);
      const { usage } = await alice.call("getTurn", { message_id: final.id });
      expect(usage?.input_tokens).toBeGreaterThan(0);
      expect(usage?.output_tokens).toBeGreaterThan(0);
    },
  );

  test.each([[[]], [[" ", "\n\n"]]])(
    "because of the empty answer %j counts its tokens and can be retried",
    async (texts) => {
      await using group = await agentGroup();
      const { key, reader, ask } = group;
      sharedProvider.respond(key, answers(...texts), answers("Hello."));
      const trigger = await ask("hello");
      const failed = await answerTo(reader, trigger);
      expect(failed.turn).toMatchObject({
        status: "failed",
        error: {
          code: "provider_unavailable",
          message: "The model ended its answer without any text. Try again.",
          parameters: { reason: "empty_answer" },
        },
        usage: { input_tokens: 25, output_tokens: 15 },
      });
      expect(sharedProvider.calls(key)).toHaveLength(1);
      await bob.call("retryAgentTurn", { message_id: failed.id });
      const second = await reader.event("events.messageComplete", ({ id }) => id !== failed.id);
      expect(second.params).toMatchObject({
        content: "Hello.",
        turn: { status: "complete", triggered_by: trigger.id },
      });
      expect(sharedProvider.calls(key)[1]?.body.messages).toEqual(
        sharedProvider.calls(key)[0]?.body.messages,
      );
    },
  );

  test("because of a missing key says so without a name and makes no call", async () => {
    await using group = await agentGroup();
    const { key, reader, ask } = group;
    await alice.call("removeAgentKey", { provider: "claude" });
    const final = await answerTo(reader, await ask("hello"));
    expect(final.turn).toMatchObject({ status: "failed", error: { code: "key_missing" } });
    expect(final.content).toBe("The owner of this agent has not set an API key for it yet.");
    expect(sharedProvider.calls(key)).toEqual([]);
  });

  test("is retried after the delay that the provider asks for", async () => {
    await using group = await agentGroup();
    const { key, reader, ask } = group;
    const at: number[] = [];
    const noting =
      (responder: Responder): Responder =>
      (exchange) => {
        at.push(server.now());
        return responder(exchange);
      };
    sharedProvider.respond(
      key,
      noting(fails(429, { headers: { "retry-after": "20" } })),
      noting(fails(503, { headers: { "retry-after-ms": "10000" } })),
      noting(answers("At last.")),
    );
    const final = await server.moveClockDuring(answerTo(reader, await ask("hello")), 1000);
    expect(final).toMatchObject({ content: "At last.", turn: { status: "complete" } });
    const [first = 0, second = 0, third = 0] = at;
    // Not earlier than the provider asks, to within the steps of the clock.
    expect(second - first).toBeGreaterThan(18_000);
    expect(third - second).toBeGreaterThan(8000);
    expect((await alice.call("getTurn", { message_id: final.id })).tries).toBe(3);
  });
});

describe("limits", () => {
  /** An owner with limits, and groups in which their agent is always on. */
  async function limited(limits: object, groups: number, spenders = bob) {
    const owner = await signUp(server.url, "thrifty");
    const key = await newKey(owner);
    await owner.call("setAgentLimits", { provider: "claude", ...limits });
    sharedProvider.respond(key, spendsAll);
    const agent_username = agentOf(owner);
    const chats: Conversation[] = [];
    for (let made = 0; made < groups; made += 100) {
      const some = Array.from({ length: Math.min(100, groups - made) }, async () => {
        const usernames = [spenders.username, agent_username];
        const chat = await owner.call("startChat", { usernames, kind: "group" });
        await owner.call("addGroupAgent", { chat_id: chat.id, agent_username, always_on: true });
        return chat;
      });
      chats.push(...(await Promise.all(some)));
    }
    return { owner, key, chats, agent: agent_username };
  }

  /** The tokens of all calls with a key, to a provider that uses as many as allowed. */
  const charged = (key: string) =>
    sharedProvider.calls(key).reduce((sum, { body }) => sum + 25 + Number(body.max_tokens), 0);

  const used = async (owner: Person) => {
    const { items } = await owner.call("getAgentUsage");
    return items.reduce(
      (sum, { input_tokens, output_tokens }) => sum + input_tokens + output_tokens,
      0,
    );
  };

  async function endings(socket: Socket, triggers: Message[]) {
    const asked = new Set(triggers.map(({ id }) => id));
    const finals = await socket.until(() => {
      const ended = socket.eventsNamed("events.messageComplete").map(({ params }) => params);
      const theirs = ended.filter(({ turn }) => asked.has(turn?.triggered_by ?? ""));
      return theirs.length === asked.size && theirs;
    }, "every answer");
    const exceeded = finals.filter(({ turn }) => turn?.error?.code === "budget_exceeded");
    const complete = finals.filter(({ turn }) => turn?.status === "complete");
    const others = finals.filter((final) => !exceeded.includes(final) && !complete.includes(final));
    expect(others.map(({ turn }) => turn?.error)).toEqual([]);
    for (const { content, turn } of exceeded) {
      expect(turn?.status).toBe("failed");
      expect(content).toBe(turn?.error?.message ?? "");
      expect(content).toMatch(/^This agent.*\.$/);
    }
    return { exceeded: exceeded.length, complete: complete.length };
  }

  test("hundreds of concurrent triggers cannot exceed the daily limit", async () => {
    const daily_tokens = 30_000;
    const { owner, key, chats } = await limited({ daily_tokens }, 400);
    await using socket = await bob.connect();
    const triggers = await Promise.all(chats.map((chat) => say(bob, chat, "hello")));
    const { exceeded, complete } = await endings(socket, triggers);
    expect(sharedProvider.calls(key)).toHaveLength(complete);
    expect(complete).toBeGreaterThan(10);
    expect(exceeded).toBeGreaterThan(300);
    expect(charged(key)).toBeLessThanOrEqual(daily_tokens);
    expect(await used(owner)).toBe(charged(key));
  });

  test("of many concurrent triggers, only turns_per_minute run", async () => {
    const { key, chats } = await limited({ turns_per_minute: 7 }, 60);
    await using socket = await bob.connect();
    const triggers = await Promise.all(chats.map((chat) => say(bob, chat, "hello")));
    expect(await endings(socket, triggers)).toEqual({ exceeded: 53, complete: 7 });
    expect(sharedProvider.calls(key)).toHaveLength(7);
    // The limit holds for the rest of the minute.
    expect(await endings(socket, [await say(bob, chats[0] as Conversation, "again")])).toEqual({
      exceeded: 1,
      complete: 0,
    });
  });

  test("chat_daily_tokens applies to each conversation separately", async () => {
    const { key, chats, owner } = await limited({ chat_daily_tokens: 3000 }, 2);
    await using socket = await bob.connect();
    for (const chat of chats) {
      const before = charged(key);
      let outcomes = { exceeded: 0, complete: 0 };
      while (outcomes.exceeded === 0) {
        outcomes = await endings(socket, [await say(bob, chat, "hello")]);
      }
      expect(charged(key) - before).toBeWithin(1000, 3001);
    }
    await owner.call("setAgentLimits", { provider: "claude", chat_daily_tokens: null });
    expect(await endings(socket, [await say(bob, chats[0] as Conversation, "now?")])).toEqual({
      exceeded: 0,
      complete: 1,
    });
  });

  test("the remaining budget shortens the answer limit of the request", async () => {
    const { key, chats } = await limited({ daily_tokens: 1200 }, 1);
    await using socket = await bob.connect();
    await endings(socket, [await say(bob, chats[0] as Conversation, "hello")]);
    expect(Number(sharedProvider.calls(key)[0]?.body.max_tokens)).toBeWithin(64, 1000);
  });

  test("a limit of zero prevents calls until it is lifted", async () => {
    for (const limit of ["daily_tokens", "chat_daily_tokens", "turns_per_minute"]) {
      const { owner, key, chats } = await limited({ [limit]: 0 }, 1);
      const [chat] = chats as [Conversation];
      await using socket = await bob.connect();
      const trigger = await say(bob, chat, "hello");
      expect(await endings(socket, [trigger])).toMatchObject({ exceeded: 1 });
      expect(sharedProvider.calls(key)).toEqual([]);
      expect(await used(owner)).toBe(0);
      await owner.call("setAgentLimits", { provider: "claude", [limit]: null });
      expect(await endings(socket, [await say(bob, chat, "now?")])).toMatchObject({ complete: 1 });
    }
  });

  test("with spenders set to owner, only the owner can start and retry turns", async () => {
    const { owner, key, chats, agent } = await limited({ spenders: "owner" }, 1);
    const [chat] = chats as [Conversation];
    await using socket = await bob.connect();
    // A message without a mention gets no answer, one with a mention gets a refusal.
    await say(bob, chat, "hello");
    expect(await bob.call("stopChatAgents", { chat_id: chat.id })).toEqual({
      stopped: 0,
      cancelled: 0,
    });
    const refused = await answerTo(socket, await say(bob, chat, `@${agent} hello`));
    expect(refused.turn).toMatchObject({ status: "failed", error: { code: "budget_exceeded" } });
    expect(refused.content).toContain("owner");
    // A retry is refused too, unless the owner makes it.
    await bob.call("retryAgentTurn", { message_id: refused.id });
    const second = await socket.event("events.messageComplete", ({ id }) => id !== refused.id);
    expect(second.params.turn).toMatchObject({ error: { code: "budget_exceeded" } });
    expect(sharedProvider.calls(key)).toEqual([]);
    const seen = new Set([refused.id, second.params.id]);
    await owner.call("retryAgentTurn", { message_id: refused.id });
    const third = await socket.event("events.messageComplete", ({ id }) => !seen.has(id));
    expect(third.params.turn).toMatchObject({
      status: "complete",
      triggered_by: refused.turn?.triggered_by,
    });
    expect(await answerTo(socket, await say(owner, chat, "hello"))).toMatchObject({
      turn: { status: "complete" },
    });
  });
});
