import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { closeCodes, type EventFrame, type EventName, type Message } from "@parley/protocol";
import {
  agentOf,
  failure,
  groupOf,
  grown,
  type Person,
  people,
  post,
  replyTo,
  type Socket,
  say,
} from "@parley/testkit/client.ts";
import type { TestNode } from "@parley/testkit/cluster.ts";
import { answers, spendsAll } from "@parley/testkit/provider-responders.ts";
import type { PendingCall } from "@parley/testkit/shared-provider.ts";
import { finish, newKey } from "@parley/testkit/turns.ts";
import { SQL } from "bun";
import { startScene, type TestScene } from "./crew.ts";

/** A turn whose node has died is taken over within 5 s, on a machine that is not busy. */
const TAKEOVER_MS = 25_000;

let scene: TestScene;
let one: TestNode;
let two: TestNode;
let three: TestNode;
beforeAll(async () => {
  scene = await startScene();
  [one, two, three] = scene.cluster.nodes as [TestNode, TestNode, TestNode];
});
afterAll(() => scene[Symbol.asyncDispose]());

/** A group of alice, bob and carol with alice's two agents, which are answered for by hand. */
async function place() {
  const [alice, bob, carol] = await people(scene.cluster.url, "alice", "bob", "carol");
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

/** The first event of that name that fits, if it takes no longer than a takeover may. */
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

const ended = (socket: Socket, { id }: Pick<Message, "id">) =>
  event(socket, "events.messageComplete", (message) => message.id === id).then(
    ({ params }) => params,
  );

const heard = (socket: Socket, { id }: Pick<Message, "id">, offset: number) =>
  event(socket, "events.messageDelta", (delta) => delta.id === id && delta.offset === offset);

/** How many turns a node runs. */
async function running({ url }: TestNode): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`, { keepalive: false })).text();
  return Number(/^parley_turns (\d+)$/m.exec(metrics)?.[1]);
}

describe("a turn", () => {
  type Place = Awaited<ReturnType<typeof place>>;

  /** Asks at a node until that one answers: each of them looks for turns, and another may be quicker. */
  async function begunAt(
    node: TestNode,
    { alice, keys, ask }: Place,
    listener: Socket,
    provider: "claude" | "gpt" = "claude",
  ) {
    for (;;) {
      const before = await running(node);
      const message = await replyTo(listener, await ask(alice.at(node.url), provider));
      const call = await scene.sharedProvider.nextCall(keys[provider]);
      if ((await running(node)) > before) return { message, call };
      await finish(call, "Elsewhere.");
      await ended(listener, message);
    }
  }

  test("of a node that dies is begun again if nobody saw any of it, and ended otherwise", async () => {
    const here = await place();
    const { bob, carol, keys } = here;
    await using listener = await bob.at(three.url).connect();
    const { message: seen, call: first } = await begunAt(one, here, listener);
    const { message: unseen, call: silent } = await begunAt(one, here, listener, "gpt");
    const calls = scene.sharedProvider.calls(keys.claude).length;
    await first.sendText("Hel");
    await heard(listener, seen, 3);
    await one.kill();
    await Promise.all([first.request.closed, silent.request.closed]);

    const again = await scene.sharedProvider.nextCall(keys.gpt);
    await finish(again, "Anew.");
    expect(await ended(listener, unseen)).toMatchObject({
      content: "Anew.",
      turn: { status: "complete", error: null },
    });
    expect(await ended(listener, seen)).toMatchObject({
      content: "Hel",
      turn: { status: "failed", error: { code: "interrupted" } },
    });
    expect(grown(listener, { ...unseen, content: "" })).toBe("Anew.");
    expect(scene.sharedProvider.calls(keys.claude)).toHaveLength(calls);
    await one.restart();
    const late = await carol.at(one.url).call("getMessage", { message_id: seen.id });
    expect(late).toMatchObject({ content: "Hel", turn: { status: "failed" } });
  });

  test("of a node that is held up for a second is not taken over", async () => {
    const here = await place();
    await using listener = await here.bob.at(three.url).connect();
    const { message, call } = await begunAt(two, here, listener);
    await call.sendText("One ");
    await heard(listener, message, 4);
    for (const words of ["two ", "three "]) {
      two.pause();
      await Bun.sleep(1000);
      two.resume();
      await call.sendText(words);
      await event(listener, "events.messageDelta", ({ delta }) => delta.endsWith(words));
    }
    await finish(call, "four");
    expect(await ended(listener, message)).toMatchObject({
      content: "One two three four",
      turn: { status: "complete" },
    });
  });

  test("that was taken over gets nothing more from a node that stood still", async () => {
    const here = await place();
    const { alice, bob } = here;
    await using listener = await bob.at(three.url).connect();
    await using stayed = await bob.at(two.url).connect();
    const { message, call } = await begunAt(two, here, listener);
    await call.sendText("One ");
    await heard(listener, message, 4);
    two.pause();
    await call.sendText("two ", "three");
    const final = await ended(listener, message);
    expect(final).toMatchObject({
      content: "One ",
      turn: { status: "failed", error: { code: "interrupted" } },
    });
    two.resume();
    // It finds that the turn is no longer its own, and lets go of it.
    await call.request.closed;
    expect(await ended(stayed, message)).toEqual(final);
    for (const socket of [listener, stayed]) {
      await socket.settled();
      expect(grown(socket, { ...message, content: "" })).toBe("One ");
    }
    expect(await alice.call("getMessage", { message_id: message.id })).toEqual(final);
  });
});

describe("an answer", () => {
  test("that streams on one node can be read on the others, from where it is", async () => {
    const { alice, bob, carol, chat, keys, ask } = await place();
    await using listener = await bob.at(two.url).connect();
    const message = await replyTo(listener, await ask(alice.at(one.url)));
    const call = await scene.sharedProvider.nextCall(keys.claude);
    await call.sendText("Grüße ");
    await heard(listener, message, 8);
    await using newcomer = await carol.at(three.url).connect();
    const { items } = await carol.at(three.url).call("getChatHistory", { chat_id: chat.id });
    const partial = items.find(({ id }) => id === message.id) as Message;
    expect(partial).toMatchObject({ content: "Grüße ", finalized_at: null });
    await finish(call, "an alle");
    const { content } = await ended(newcomer, message);
    expect(content).toBe("Grüße an alle");
    expect(grown(newcomer, partial)).toBe(content);
  });

  test.each([
    ["whole", "complete", (call: PendingCall) => call.complete()],
    ["broken off", "failed", (call: PendingCall) => call.disconnect()],
  ] as const)(
    "that is %s says all that was said, though the database lost the last of it in a crash",
    async (_, status, finishes) => {
      const { alice, bob, keys, ask } = await place();
      await using listener = await bob.at(two.url).connect();
      const message = await replyTo(listener, await ask(alice.at(one.url)));
      const call = await scene.sharedProvider.nextCall(keys.claude);
      await call.sendText("Hello");
      await heard(listener, message, 5);
      await using sql = new SQL({ url: scene.cluster.postgres.url, max: 1 });
      await sql`DELETE FROM chunks WHERE text = 'Hello'`;
      await finishes(call);
      expect(await ended(listener, message)).toMatchObject({ content: "Hello", turn: { status } });
    },
    60_000,
  );

  test("can be stopped, repeated and braked from any node", async () => {
    const { alice, bob, carol, chat, keys, ask } = await place();
    await using listener = await bob.at(three.url).connect();
    const trigger = await ask(alice.at(one.url));
    const message = await replyTo(listener, trigger);
    const call = await scene.sharedProvider.nextCall(keys.claude);
    await call.sendText("Hel");
    await heard(listener, message, 3);
    await alice.at(two.url).call("stopAgentTurn", { message_id: message.id });
    expect(await ended(listener, message)).toMatchObject({
      content: "Hel",
      turn: { status: "stopped" },
    });
    // The node that asked the provider lets go of it.
    await call.request.closed;

    await alice.at(three.url).call("retryAgentTurn", { message_id: message.id });
    const repeated = await event(
      listener,
      "events.messageNew",
      ({ id, turn }) => turn?.triggered_by === trigger.id && id !== message.id,
    );
    const second = await scene.sharedProvider.nextCall(keys.claude);
    await second.sendText("Again");
    await heard(listener, repeated.params, 5);
    await ask(alice.at(two.url));
    const brake = await carol.at(one.url).call("stopChatAgents", { chat_id: chat.id });
    expect(brake).toEqual({ stopped: 1, cancelled: 1 });
    expect(await ended(listener, repeated.params)).toMatchObject({
      content: "Again",
      turn: { status: "stopped" },
    });
    await second.request.closed;
  });
});

describe("an owner's limits", () => {
  /** Asks at every node at once, each time in another conversation, and waits for the answers. */
  async function askEverywhere(alice: Person, provider: string, times: number): Promise<Message[]> {
    const agent = agentOf(alice, provider);
    const chats = [];
    for (let place = 0; place < times; place++) {
      chats.push(await groupOf(alice, { username: agent }));
    }
    await using listener = await alice.at(one.url).connect();
    const asked = chats.map((chat, place) => {
      const node = scene.cluster.nodes[place % 3] as TestNode;
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

  test("hold over all nodes, however many are asked at once", async () => {
    const { alice, keys } = await place();
    scene.sharedProvider.respond(keys.claude, answers("Yes."));
    scene.sharedProvider.respond(keys.gpt, spendsAll);
    await alice.call("setAgentLimits", { provider: "claude", turns_per_minute: 2 });
    const often = await askEverywhere(alice, "claude", 6);
    expect(often.map(({ turn }) => turn?.error?.code ?? "complete").toSorted()).toEqual([
      ...Array(4).fill("budget_exceeded"),
      ...Array(2).fill("complete"),
    ]);
    expect(scene.sharedProvider.calls(keys.claude)).toHaveLength(2);

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
  test("that is signed out at one node is over at all of them", async () => {
    const [dave] = await people(scene.cluster.url, "dave");
    const sockets = [await dave.at(one.url).connect(), await dave.at(two.url).connect()];
    await dave.at(three.url).call("signOut");
    for (const socket of sockets) {
      await socket.until(() => socket.closed, "the end");
      expect(socket.closed?.code).toBe(closeCodes.signedOut);
    }
    for (const { url } of scene.cluster.nodes) {
      expect(await failure(dave.at(url).call("getMe"))).toMatchObject({ code: "unauthorized" });
    }
  });
});

describe("while PostgreSQL is away", () => {
  test("calls are told to come back, answers get no holes, and all goes on by itself", async () => {
    const { alice, bob, chat, keys, ask } = await place();
    const { postgres, nodes } = scene.cluster;
    await using listener = await bob.at(two.url).connect();
    const message = await replyTo(listener, await ask(alice.at(one.url)));
    const call = await scene.sharedProvider.nextCall(keys.claude);
    await call.sendText("One ");
    await heard(listener, message, 4);
    await postgres.kill();
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

    await postgres.start();
    await scene.cluster.ready();
    await call.sendText("three").catch(() => {});
    const sent = await alice.at(three.url).call("sendMessage", send);
    expect(await alice.at(two.url).call("sendMessage", send)).toEqual(sent);
    await event(listener, "events.messageNew", ({ id }) => id === sent.id);
    const { content, turn } = await ended(listener, message);
    expect(turn).toMatchObject({ status: "failed", error: { code: "interrupted" } });
    expect("One two three").toStartWith(content);
    expect(listener.closed).toBeNull();
  });
});
