import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  type Conversation,
  closeCodes,
  type EventFrame,
  type EventName,
  type Message,
} from "@parley/protocol";
import {
  agentOf,
  assembledContent,
  failure,
  groupOf,
  type Person,
  people,
  post,
  replyTo,
  type Socket,
  say,
} from "@parley/testkit/client.ts";
import type { TestNode } from "@parley/testkit/cluster.ts";
import type { TestPostgres } from "@parley/testkit/postgres.ts";
import { answers, spendsAll } from "@parley/testkit/provider-responders.ts";
import type { PendingCall } from "@parley/testkit/shared-provider.ts";
import { finish, newKey } from "@parley/testkit/turns.ts";
import { until } from "@parley/testkit/until.ts";
import { SQL } from "bun";
import { type AgentCluster, startAgentCluster } from "./users.ts";

/** A turn of a dead node is taken over within 5 s on an idle machine. */
const TAKEOVER_MS = 25_000;

let setup: AgentCluster;
let one: TestNode;
let two: TestNode;
let three: TestNode;
beforeAll(async () => {
  setup = await startAgentCluster();
  [one, two, three] = setup.cluster.nodes as [TestNode, TestNode, TestNode];
});
afterAll(() => setup[Symbol.asyncDispose]());

/** A group of alice, bob and carol with alice's two agents. The test answers for their provider. */
async function groupWithAgents() {
  const [alice, bob, carol] = await people(setup.cluster.url, "alice", "bob", "carol");
  const keys = { claude: await newKey(alice), gpt: await newKey(alice, "gpt") };
  const chat = await groupOf(alice, bob, carol);
  for (const provider of ["claude", "gpt"]) {
    const agent_username = agentOf(alice, provider);
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username });
  }
  const ask = (person: Person, provider: "claude" | "gpt" = "claude") =>
    say(person, chat, `@${agentOf(alice, provider)} hello`);
  return { alice, bob, carol, chat, keys, ask };
}

/** Waits for the first matching event, for as long as a takeover may take. */
const event = <Name extends EventName>(
  socket: Socket,
  name: Name,
  fits: (params: EventFrame<Name>["params"]) => boolean,
) =>
  socket.until(
    () =>
      socket.eventsNamed(name).find(({ params }) => fits(params)) as EventFrame<Name> | undefined,
    name,
    TAKEOVER_MS,
  );

const waitForEnd = (socket: Socket, { id }: Pick<Message, "id">) =>
  event(socket, "events.messageComplete", (message) => message.id === id).then(
    ({ params }) => params,
  );

const waitForDelta = (socket: Socket, { id }: Pick<Message, "id">, offset: number) =>
  event(socket, "events.messageDelta", (delta) => delta.id === id && delta.offset === offset);

/** The number of turns that a node runs. */
async function countTurns({ url }: TestNode): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`, { keepalive: false })).text();
  return Number(/^parley_turns (\d+)$/m.exec(metrics)?.[1]);
}

describe("a turn", () => {
  type Group = Awaited<ReturnType<typeof groupWithAgents>>;

  /** Sends messages to a node until that node runs the turn: one that runs fewer may claim it. */
  async function startTurnAt(
    node: TestNode,
    { alice, keys, ask }: Group,
    listener: Socket,
    provider: "claude" | "gpt" = "claude",
  ) {
    for (;;) {
      const before = await countTurns(node);
      const message = await replyTo(listener, await ask(alice.at(node.url), provider));
      const call = await setup.sharedProvider.nextCall(keys[provider]);
      if ((await countTurns(node)) > before) return { message, call };
      await finish(call, "Elsewhere.");
      await waitForEnd(listener, message);
    }
  }

  test("of a dead node starts over if nothing was streamed, and ends as interrupted otherwise", async () => {
    const group = await groupWithAgents();
    const { bob, carol, keys } = group;
    await using listener = await bob.at(three.url).connect();
    const { message: seen, call: first } = await startTurnAt(one, group, listener);
    // Turns at the other nodes: a node with more turns than they have does not claim another one.
    const busy = await groupWithAgents();
    await using aside = await busy.bob.at(three.url).connect();
    const others = [
      await startTurnAt(two, busy, aside),
      await startTurnAt(three, busy, aside, "gpt"),
    ];
    const { message: unseen, call: silent } = await startTurnAt(one, group, listener, "gpt");
    const calls = setup.sharedProvider.calls(keys.claude).length;
    await first.sendText("Hel");
    await waitForDelta(listener, seen, 3);
    await one.kill();
    await Promise.all([first.request.closed, silent.request.closed]);

    const again = await setup.sharedProvider.nextCall(keys.gpt);
    await finish(again, "Anew.");
    expect(await waitForEnd(listener, unseen)).toMatchObject({
      content: "Anew.",
      turn: { status: "complete", error: null },
    });
    expect(await waitForEnd(listener, seen)).toMatchObject({
      content: "Hel",
      turn: { status: "failed", error: { code: "interrupted" } },
    });
    expect(assembledContent(listener, { ...unseen, content: "" })).toBe("Anew.");
    expect(setup.sharedProvider.calls(keys.claude)).toHaveLength(calls);
    for (const { call } of others) await finish(call);
    await one.restart();
    const late = await carol.at(one.url).call("getMessage", { message_id: seen.id });
    expect(late).toMatchObject({ content: "Hel", turn: { status: "failed" } });
  });

  /** Conversations in which a turn of alice's agent can run at the same time. */
  async function chatsWithAgent(alice: Person, count: number) {
    const agent = agentOf(alice, "claude");
    const chats: Conversation[] = [];
    while (chats.length < count) chats.push(await groupOf(alice, { username: agent }));
    const ask = (chat: Conversation) => say(alice.at(one.url), chat, `@${agent} hello`);
    return { chats, ask };
  }

  test("runs on the node with the fewest turns, wherever the message was sent", async () => {
    const { alice, keys } = await groupWithAgents();
    const { chats, ask } = await chatsWithAgent(alice, 12);
    const calls: PendingCall[] = [];
    for (const chat of chats) {
      await ask(chat);
      calls.push(await setup.sharedProvider.nextCall(keys.claude));
    }
    const running = await Promise.all(setup.cluster.nodes.map(countTurns));
    for (const call of calls) await finish(call);
    expect(Math.max(...running)).toBeLessThanOrEqual(6);
  });

  test("begins although the nodes with the fewest turns are paused", async () => {
    const { alice, keys } = await groupWithAgents();
    const { chats, ask } = await chatsWithAgent(alice, 6);
    two.pause();
    three.pause();
    await Promise.all(chats.map(ask));
    const next = chats.map(() => setup.sharedProvider.nextCall(keys.claude));
    const calls = await Promise.all(next);
    two.resume();
    three.resume();
    for (const call of calls) await finish(call);
    expect(calls).toHaveLength(6);
  });

  /** Pauses a node for a second. False if it became longer, as it may on a busy machine. */
  async function pauseForSecond(node: TestNode): Promise<boolean> {
    const began = performance.now();
    node.pause();
    await Bun.sleep(1000);
    node.resume();
    return performance.now() - began < 1500;
  }

  /** Streams an answer with pauses of its node. Null if a pause became too long. */
  async function answerWithPauses(group: Group, listener: Socket): Promise<Message | null> {
    const { message, call } = await startTurnAt(two, group, listener);
    await call.sendText("One ");
    await waitForDelta(listener, message, 4);
    for (const [words, offset] of [
      ["two ", 8],
      ["three ", 14],
    ] as const) {
      if (!(await pauseForSecond(two))) {
        await finish(call).catch(() => undefined);
        await waitForEnd(listener, message);
        return null;
      }
      await call.sendText(words);
      await waitForDelta(listener, message, offset);
    }
    await finish(call, "four");
    return waitForEnd(listener, message);
  }

  test("of a node that is paused for a second is not taken over", async () => {
    const group = await groupWithAgents();
    await using listener = await group.bob.at(three.url).connect();
    let final: Message | null = null;
    while (!final) final = await answerWithPauses(group, listener);
    expect(final).toMatchObject({
      content: "One two three four",
      turn: { status: "complete" },
    });
  });

  test("that was taken over ignores the output of its former node", async () => {
    const group = await groupWithAgents();
    const { alice, bob } = group;
    await using listener = await bob.at(three.url).connect();
    await using stayed = await bob.at(two.url).connect();
    const { message, call } = await startTurnAt(two, group, listener);
    await call.sendText("One ");
    await waitForDelta(listener, message, 4);
    two.pause();
    await call.sendText("two ", "three");
    const final = await waitForEnd(listener, message);
    expect(final).toMatchObject({
      content: "One ",
      turn: { status: "failed", error: { code: "interrupted" } },
    });
    two.resume();
    // The former node notices the takeover and aborts its call.
    await call.request.closed;
    expect(await waitForEnd(stayed, message)).toEqual(final);
    for (const socket of [listener, stayed]) {
      await socket.settled();
      expect(assembledContent(socket, { ...message, content: "" })).toBe("One ");
    }
    expect(await alice.call("getMessage", { message_id: message.id })).toEqual(final);
  });
});

describe("an answer", () => {
  test("that streams on one node can be joined midway on another node", async () => {
    const { alice, bob, carol, chat, keys, ask } = await groupWithAgents();
    await using listener = await bob.at(two.url).connect();
    const message = await replyTo(listener, await ask(alice.at(one.url)));
    const call = await setup.sharedProvider.nextCall(keys.claude);
    await call.sendText("Grüße ");
    await waitForDelta(listener, message, 8);
    await using newcomer = await carol.at(three.url).connect();
    const { items } = await carol.at(three.url).call("getChatHistory", { chat_id: chat.id });
    const partial = items.find(({ id }) => id === message.id) as Message;
    expect(partial).toMatchObject({ content: "Grüße ", finalized_at: null });
    await finish(call, "an alle");
    const { content } = await waitForEnd(newcomer, message);
    expect(content).toBe("Grüße an alle");
    expect(assembledContent(newcomer, partial)).toBe(content);
  });

  test.each([
    ["whole", "complete", (call: PendingCall) => call.complete()],
    ["broken off", "failed", (call: PendingCall) => call.disconnect()],
  ] as const)(
    "that is %s keeps all streamed text, even if the database lost the last chunk in a crash",
    async (_, status, finishes) => {
      const { alice, bob, keys, ask } = await groupWithAgents();
      await using listener = await bob.at(two.url).connect();
      const message = await replyTo(listener, await ask(alice.at(one.url)));
      const call = await setup.sharedProvider.nextCall(keys.claude);
      await call.sendText("Hello");
      await waitForDelta(listener, message, 5);
      await using sql = new SQL({ url: setup.cluster.postgres.url, max: 1 });
      await sql`DELETE FROM chunks WHERE text = 'Hello'`;
      await finishes(call);
      expect(await waitForEnd(listener, message)).toMatchObject({
        content: "Hello",
        turn: { status },
      });
    },
  );

  test("can be stopped and retried from any node, alone or with all turns of the conversation", async () => {
    const { alice, bob, carol, chat, keys, ask } = await groupWithAgents();
    await using listener = await bob.at(three.url).connect();
    const trigger = await ask(alice.at(one.url));
    const message = await replyTo(listener, trigger);
    const call = await setup.sharedProvider.nextCall(keys.claude);
    await call.sendText("Hel");
    await waitForDelta(listener, message, 3);
    await alice.at(two.url).call("stopAgentTurn", { message_id: message.id });
    expect(await waitForEnd(listener, message)).toMatchObject({
      content: "Hel",
      turn: { status: "stopped" },
    });
    // The node that runs the turn aborts its call.
    await call.request.closed;

    await alice.at(three.url).call("retryAgentTurn", { message_id: message.id });
    const repeated = await event(
      listener,
      "events.messageNew",
      ({ id, turn }) => turn?.triggered_by === trigger.id && id !== message.id,
    );
    const second = await setup.sharedProvider.nextCall(keys.claude);
    await second.sendText("Again");
    await waitForDelta(listener, repeated.params, 5);
    await ask(alice.at(two.url));
    const brake = await carol.at(one.url).call("stopChatAgents", { chat_id: chat.id });
    expect(brake).toEqual({ stopped: 1, cancelled: 1 });
    expect(await waitForEnd(listener, repeated.params)).toMatchObject({
      content: "Again",
      turn: { status: "stopped" },
    });
    await second.request.closed;
  });
});

describe("an owner's limits", () => {
  /** Asks at every node at once, each time in another conversation, and returns the answers. */
  async function askEverywhere(alice: Person, provider: string, times: number): Promise<Message[]> {
    const agent = agentOf(alice, provider);
    const chats = [];
    for (let index = 0; index < times; index++) {
      chats.push(await groupOf(alice, { username: agent }));
    }
    await using listener = await alice.at(one.url).connect();
    const asked = chats.map((chat, index) => {
      const node = setup.cluster.nodes[index % 3] as TestNode;
      return say(alice.at(node.url), chat, `@${agent} hello`);
    });
    const triggers = new Set((await Promise.all(asked)).map(({ id }) => id));
    const finals = () =>
      listener
        .eventsNamed("events.messageComplete")
        .map(({ params }) => params)
        .filter(({ turn }) => triggers.has(turn?.triggered_by ?? ""));
    await listener.until(() => finals().length === times, "the answers", TAKEOVER_MS);
    return finals();
  }

  test("hold across all nodes under concurrent requests", async () => {
    const { alice, keys } = await groupWithAgents();
    setup.sharedProvider.respond(keys.claude, answers("Yes."));
    setup.sharedProvider.respond(keys.gpt, spendsAll);
    await alice.call("setAgentLimits", { provider: "claude", turns_per_minute: 2 });
    const often = await askEverywhere(alice, "claude", 6);
    expect(often.map(({ turn }) => turn?.error?.code ?? "complete").toSorted()).toEqual([
      ...Array(4).fill("budget_exceeded"),
      ...Array(2).fill("complete"),
    ]);
    expect(setup.sharedProvider.calls(keys.claude)).toHaveLength(2);

    const daily_tokens = 3500;
    await alice.call("setAgentLimits", { provider: "gpt", daily_tokens });
    const dear = await askEverywhere(alice, "gpt", 6);
    expect(dear.some(({ turn }) => turn?.status === "complete")).toBe(true);
    expect(dear.some(({ turn }) => turn?.error?.code === "budget_exceeded")).toBe(true);
    const { items } = await alice.call("getAgentUsage");
    const spent = items
      .filter(({ agent }) => agent === agentOf(alice, "gpt"))
      .reduce((sum, row) => sum + row.input_tokens + row.output_tokens, 0);
    expect(spent).toBeWithin(1, daily_tokens + 1);
  });
});

describe("a session", () => {
  test("that is signed out at one node ends at all nodes", async () => {
    const [dave] = await people(setup.cluster.url, "dave");
    const sockets = [await dave.at(one.url).connect(), await dave.at(two.url).connect()];
    await dave.at(three.url).call("signOut");
    for (const socket of sockets) {
      await socket.until(() => socket.closed, "the end");
      expect(socket.closed?.code).toBe(closeCodes.signedOut);
    }
    for (const { url } of setup.cluster.nodes) {
      expect(await failure(dave.at(url).call("getMe"))).toMatchObject({ code: "unauthorized" });
    }
  });
});

describe("while PostgreSQL", () => {
  const ways: [
    what: string,
    begin: (postgres: TestPostgres) => unknown,
    end: (postgres: TestPostgres) => unknown,
  ][] = [
    ["is down", (postgres) => postgres.kill(), (postgres) => postgres.start()],
    ["hangs", (postgres) => postgres.pause(), (postgres) => postgres.resume()],
  ];
  test.each(ways)(
    "%s, calls fail with retry_after, answers have no gaps, and everything recovers by itself",
    async (_, begin, end) => {
      const { postgres, nodes } = setup.cluster;
      const { alice, bob, chat, keys, ask } = await groupWithAgents();
      await using listener = await bob.at(two.url).connect();
      const message = await replyTo(listener, await ask(alice.at(one.url)));
      const call = await setup.sharedProvider.nextCall(keys.claude);
      await call.sendText("One ");
      await waitForDelta(listener, message, 4);
      await begin(postgres);
      await call.sendText("two ");
      const send = { chat_id: chat.id, content: "anybody there?", client_msg_id: "only" };
      const refused = nodes.map(async ({ url }) => {
        const { status, body } = await post(url, "sendMessage", send, alice.token);
        expect(status).toBe(503);
        expect(body).toMatchObject({ code: "unavailable", parameters: { retry_after: 1 } });
        expect((await fetch(`${url}/ready`)).status).toBe(503);
        expect((await fetch(`${url}/health`)).status).toBe(200);
      });
      const onSocket = failure(listener.call("getChats"));
      await Promise.all(refused);
      expect(await onSocket).toMatchObject({ code: "unavailable", parameters: { retry_after: 1 } });

      await end(postgres);
      await setup.cluster.ready();
      await call.sendText("three").catch(() => {});
      const sent = await alice.at(three.url).call("sendMessage", send);
      expect(await alice.at(two.url).call("sendMessage", send)).toEqual(sent);
      await event(listener, "events.messageNew", ({ id }) => id === sent.id);
      const { content, turn } = await waitForEnd(listener, message);
      expect(turn).toMatchObject({ status: "failed", error: { code: "interrupted" } });
      expect("One two three").toStartWith(content);
      expect(listener.closed).toBeNull();
    },
  );
});

test("while NATS hangs, messages and answers of other nodes arrive, and nodes are not ready", async () => {
  const { nats, nodes } = setup.cluster;
  const { alice, bob, chat, keys, ask } = await groupWithAgents();
  await using listener = await bob.at(two.url).connect();
  const arrives = async (content: string) => {
    const { id } = await say(alice.at(one.url), chat, content);
    await event(listener, "events.messageNew", (message) => message.id === id);
  };
  nats.pause();
  await arrives("before the nodes have noticed");
  await Promise.all(
    nodes.map(({ url }) =>
      until(async () => (await fetch(`${url}/ready`)).status === 503, "NATS counts as down"),
    ),
  );
  await arrives("after the nodes have noticed");
  const message = await replyTo(listener, await ask(alice.at(one.url)));
  const call = await setup.sharedProvider.nextCall(keys.claude);
  await call.sendText("Hel");
  await waitForDelta(listener, message, 3);
  await finish(call, "lo");
  expect(await waitForEnd(listener, message)).toMatchObject({ content: "Hello" });
  nats.resume();
  await setup.cluster.ready();
  await arrives("when NATS answers again");
  expect(assembledContent(listener, { ...message, content: "" })).toBe("Hello");
});
