import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type NatsConnection, nkeys } from "@nats-io/transport-node";
import { closeCodes, type EventFrame } from "@parley/protocol";
import { selfSigned } from "@parley/testkit/certificate.ts";
import { startNats, type TestNats } from "@parley/testkit/nats.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { until } from "@parley/testkit/until.ts";
import pino from "pino";
import { createNatsBus, type NatsBusOptions } from "../src/changes/bus-nats.ts";
import { accountSuspended, type LoggedChange } from "../src/changes/change.ts";
import { type FakeClient, human } from "./support/broker.ts";
import { summaries, TestChangeLog } from "./support/change-log.ts";
import { publishAll, signal } from "./support/changes.ts";
import {
  type NodeOptions,
  startNode,
  type TestNode,
  untilDiscovered,
  untilReady,
} from "./support/nodes.ts";

const CHAT = "0190f000-0000-7000-8000-000000000001";
const OTHER_CHAT = "0190f000-0000-7000-8000-000000000002";

let nats: TestNats;
beforeAll(async () => {
  nats = await startNats();
});
afterAll(() => nats[Symbol.asyncDispose]());

const started: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of started.splice(0)) await each[Symbol.asyncDispose]();
});

/** Nodes that share a change log and a NATS prefix of their own. */
function installation() {
  const prefix = `test${Bun.randomUUIDv7().replaceAll("-", "")}`;
  const changeLog = new TestChangeLog();
  changeLog.addConversation(CHAT, "alice", "bob", "carol");
  const node = async (options: NodeOptions = {}, url = nats.url): Promise<TestNode> => {
    const made = await startNode(url, changeLog, { prefix, ...options });
    started.push(made);
    return made;
  };
  /** A NATS client that is not a node and can publish anything. */
  const foreignConnection = async (): Promise<NatsConnection> => {
    const connection = await connect({ servers: nats.url });
    started.push({ [Symbol.asyncDispose]: () => connection.close() });
    return connection;
  };
  return { prefix, changeLog, node, foreignConnection };
}

/** A summary of all events that a client has received, in order. */
const received = (client: FakeClient) => summaries(client.received.map((data) => JSON.parse(data)));

const expectReceived = (client: FakeClient, ...expected: string[]) =>
  until(() => received(client).length >= expected.length, `${expected} received`).then(() =>
    expect(received(client)).toEqual(expected),
  );

const disconnected = new WeakMap<TestNode, boolean>();
/** Starts a check, and returns the result of the previous one. */
function isDisconnected(node: TestNode): boolean {
  node.bus.ready().then(
    () => disconnected.set(node, false),
    () => disconnected.set(node, true),
  );
  return disconnected.get(node) ?? false;
}

const typing = (username: string): EventFrame => ({
  method: "events.typing",
  params: { conversation_id: CHAT, actor: human(username), is_typing: true },
});

describe("delivery", () => {
  test("events reach the sockets of every node, in the same order", async () => {
    const { changeLog, node } = installation();
    const [one, two, three] = [await node(), await node(), await node()];
    const clients = [
      await one.connect("alice"),
      await two.connect("bob"),
      await three.connect("carol"),
    ];
    publishAll(one, [changeLog.commitMessage(CHAT, "a")]);
    signal(one, typing("alice"), { conversation: CHAT }, "alice");
    // Nodes that discover each other read the log, which has "b" but not the typing before it.
    for (const client of clients.slice(1)) await expectReceived(client, "a", "typing");
    publishAll(one, [changeLog.commitMessage(CHAT, "b")]);
    await expectReceived(clients[0] as FakeClient, "a", "b");
    await expectReceived(clients[1] as FakeClient, "a", "typing", "b");
    await expectReceived(clients[2] as FakeClient, "a", "typing", "b");
  });

  test("changes that several nodes commit to one conversation arrive in commit order", async () => {
    const { changeLog, node } = installation();
    const nodes = [await node(), await node(), await node()];
    const names = ["alice", "bob", "carol"];
    const clients = await Promise.all(nodes.map((each, place) => each.connect(names[place] ?? "")));
    const expected: string[] = [];
    const late: (() => void)[] = [];
    for (let count = 0; count < 300; count++) {
      expected.push(`${count}`);
      const change = changeLog.commitMessage(CHAT, `${count}`);
      const publish = () => publishAll(nodes[count % 3] as TestNode, [change]);
      // Some nodes publish only after others have committed and published later changes.
      if (count % 7 === 0) late.push(publish);
      else publish();
      if (count % 11 === 0) for (const each of late.splice(0)) each();
      if (count % 50 === 0) await Bun.sleep(1);
    }
    for (const each of late) each();
    for (const client of clients) await expectReceived(client, ...expected);
  });

  test("installations that share a NATS do not receive each other's events", async () => {
    const [ours, theirs] = [installation(), installation()];
    const [here, there] = [await ours.node(), await theirs.node()];
    const [alice, other] = [await here.connect("alice"), await there.connect("alice")];
    publishAll(here, [ours.changeLog.commitMessage(CHAT, "ours")]);
    publishAll(there, [theirs.changeLog.commitMessage(CHAT, "theirs")]);
    await expectReceived(alice, "ours");
    await expectReceived(other, "theirs");
  });

  test("deltas that arrive after the end of their message are dropped", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    const delta = (id: string): EventFrame => ({
      method: "events.messageDelta",
      params: { id, delta: "word", offset: 4 },
    });
    publishAll(two, [changeLog.commitCompletion(CHAT, "ended")]);
    signal(one, delta("ended"), { conversation: CHAT });
    signal(one, delta("another"), { conversation: CHAT });
    const deltas = () =>
      bob.received
        .map((data) => JSON.parse(data) as EventFrame)
        .flatMap((frame) => (frame.method === "events.messageDelta" ? [frame.params.id] : []));
    await until(() => deltas().includes("another"), "bob receives the other delta");
    expect(deltas()).toEqual(["another"]);
    expect(received(bob)).toContain("messageComplete");
  });

  test("events for accounts reach their sockets on all nodes, except the excluded socket", async () => {
    const { node } = installation();
    const [one, two] = [await node(), await node()];
    const [asking, other, bob] = [
      await one.connect("alice"),
      await two.connect("alice"),
      await two.connect("bob"),
    ];
    const frame: EventFrame = {
      method: "events.messageDeleted",
      params: { conversation_id: CHAT, ids: ["hidden"] },
    };
    publishAll(one, [{ frame, to: { users: ["alice"] }, exceptSocket: asking.id }]);
    publishAll(one, [{ frame, to: { users: ["bob"] } }]);
    await expectReceived(other, "hidden");
    await expectReceived(bob, "hidden");
    expect(received(asking)).toEqual([]);
  });

  test("a new display name applies to sockets on every node", async () => {
    const { node } = installation();
    const [one, two] = [await node(), await node()];
    await two.connect("alice");
    const params = { ...human("alice"), display_name: "Alice the Second" };
    const frame: EventFrame = { method: "events.accountUpdated", params };
    publishAll(one, [{ frame, to: { users: ["alice"] } }]);
    const name = () => two.hub.person("alice")?.account.display_name;
    await until(() => name() === "Alice the Second", "the new name");
  });

  test("a node subscribes to a conversation only while one of its members is connected to it", async () => {
    const { prefix, changeLog, node, foreignConnection } = installation();
    const [one, two] = [await node(), await node()];
    const requester = await foreignConnection();
    const isFollowed = async () => {
      const header = JSON.stringify({});
      await requester.flush();
      const asked = requester.request(
        `${prefix}.c.${CHAT}`,
        `${header}\n{"method":"events.typing"}`,
        {
          timeout: 50,
        },
      );
      // Without a subscriber NATS answers, though perhaps late; otherwise the request times out.
      const error = await asked.then(
        () => null,
        (refusal: Error) => refusal,
      );
      return !/no responders/i.test(String(error));
    };
    while (await isFollowed());
    const [phone, laptop] = [await two.connect("bob"), await two.connect("bob")];
    expect(await isFollowed()).toBe(true);
    phone.close(1000, "");
    expect(await isFollowed()).toBe(true);
    laptop.close(1000, "");
    while (await isFollowed());
    const back = await two.connect("bob");
    publishAll(one, [changeLog.commitMessage(CHAT, "again")]);
    await until(() => received(back).includes("again"), "the node subscribes again");
  });

  test("a client that connects while events are published misses none afterwards", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    let count = 0;
    const publishing = setInterval(
      () => publishAll(one, [changeLog.commitMessage(CHAT, `${count++}`)]),
      0,
    );
    for (let round = 0; round < 20; round++) {
      const client = await two.connect(round % 2 ? "bob" : "carol");
      const known = changeLog.counters("bob")[0]?.seq ?? 0;
      const places = () =>
        client.received
          .map((data) => (JSON.parse(data) as EventFrame).at?.seq ?? 0)
          .filter((seq) => seq > known);
      await until(() => places().length >= 3, "three events");
      expect(places().slice(0, 3)).toEqual([known + 1, known + 2, known + 3]);
      if (round % 3) client.close(1000, "");
    }
    clearInterval(publishing);
  });
});

describe("membership", () => {
  test("an account that joins receives the conversation and then all its events, on any node", async () => {
    const { changeLog, node } = installation();
    changeLog.addConversation(OTHER_CHAT, "alice");
    const [one, two] = [await node(), await node()];
    const alice = await one.connect("alice");
    const bob = [await two.connect("bob"), await two.connect("bob")];
    publishAll(one, changeLog.commitJoin(OTHER_CHAT, "bob"));
    for (let count = 0; count < 20; count++)
      publishAll(one, [changeLog.commitMessage(OTHER_CHAT, `${count}`)]);
    const after = Array.from({ length: 20 }, (_, place) => `${place}`);
    for (const client of bob) await expectReceived(client, "conversationNew", ...after);
    await expectReceived(alice, "conversationUpdated", ...after);
  });

  test("an account that leaves receives the leaving event as its last, on any node", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    const [bob, carol] = [await two.connect("bob"), await two.connect("carol")];
    publishAll(one, [changeLog.commitLeave(CHAT, "bob"), changeLog.commitMessage(CHAT, "secret")]);
    await expectReceived(carol, "conversationUpdated", "secret");
    expect(received(bob)).toEqual(["conversationUpdated"]);
  });

  test("an introduction that arrives after the removal subscribes nobody", async () => {
    const { changeLog, node } = installation();
    changeLog.addConversation(OTHER_CHAT, "alice", "carol");
    const [one, two, three] = [await node(), await node(), await node()];
    const [bob, carol] = [await three.connect("bob"), await three.connect("carol")];
    const invited = changeLog.commitJoin(OTHER_CHAT, "bob");
    publishAll(two, [changeLog.commitLeave(OTHER_CHAT, "bob")]);
    await expectReceived(carol, "conversationUpdated", "conversationUpdated");
    publishAll(one, invited);
    publishAll(one, [changeLog.commitMessage(OTHER_CHAT, "secret")]);
    await expectReceived(carol, "conversationUpdated", "conversationUpdated", "secret");
    expect(received(bob)).not.toContain("secret");
  });
});

describe("missed changes", () => {
  test("an event that was never published is delivered before newer ones", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    publishAll(one, [changeLog.commitMessage(CHAT, "a")]);
    changeLog.commitMessage(CHAT, "never published");
    publishAll(one, [changeLog.commitMessage(CHAT, "b")]);
    await expectReceived(bob, "a", "never published", "b");
  });

  test("an event that was never published is found by polling the log", async () => {
    const { changeLog, node } = installation();
    const two = await node({ everyMs: 20 });
    const bob = await two.connect("bob");
    changeLog.commitMessage(CHAT, "never published");
    await expectReceived(bob, "never published");
  });

  test("the log is read after the process was paused", async () => {
    const { changeLog, node } = installation();
    const two = await node({ awayMs: 5 });
    const bob = await two.connect("bob");
    changeLog.commitMessage(CHAT, "never published");
    Bun.sleepSync(50);
    await expectReceived(bob, "never published");
  });

  test("an uncounted change that was never published is found when its node is gone", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    await untilDiscovered(one, two);
    changeLog.commitRead(CHAT, "alice", 1);
    await one.bus.close();
    await expectReceived(bob, "chatRead");
  });

  test("changes published while the log is read are not delayed", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    await nats.stop();
    await until(() => isDisconnected(one) && isDisconnected(two), "both nodes are disconnected");
    changeLog.commitHide(CHAT, "bob", "old");
    const gate = Promise.withResolvers<void>();
    changeLog.gate = gate.promise;
    await nats.start();
    await until(() => changeLog.reads > 0, "the log is read");
    await until(
      () => !isDisconnected(one) && !isDisconnected(two),
      "both nodes are connected again",
    );
    publishAll(one, [changeLog.commitHide(CHAT, "bob", "new")]);
    await expectReceived(bob, "new");
    gate.resolve();
    await expectReceived(bob, "new", "old");
  });

  test("a missed event is found after a failed read of the log", async () => {
    const { changeLog, node } = installation();
    const two = await node({ everyMs: 20 });
    const bob = await two.connect("bob");
    changeLog.failing = true;
    changeLog.commitMessage(CHAT, "never published");
    await two.changes.catchUp();
    expect(received(bob)).toEqual([]);
    changeLog.failing = false;
    await expectReceived(bob, "never published");
  });

  test("changes after a missed introduction follow it as events", async () => {
    const { changeLog, node } = installation();
    changeLog.addConversation(OTHER_CHAT, "alice");
    const two = await node();
    const bob = await two.connect("bob");
    changeLog.commitJoin(OTHER_CHAT, "bob");
    changeLog.commitMessage(OTHER_CHAT, "a");
    changeLog.commitMessage(OTHER_CHAT, "b");
    await two.changes.catchUp();
    await expectReceived(bob, "conversationNew", "a", "b");
  });

  test("changes of a node that come before the introduction by another node follow it", async () => {
    const { changeLog, node } = installation();
    changeLog.addConversation(OTHER_CHAT, "alice");
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    changeLog.committer = one.id;
    const invited = changeLog.commitJoin(OTHER_CHAT, "bob");
    changeLog.committer = two.id;
    publishAll(two, [changeLog.commitMessage(OTHER_CHAT, "a")]);
    publishAll(one, invited);
    await expectReceived(bob, "conversationNew", "a");
    publishAll(two, [changeLog.commitMessage(OTHER_CHAT, "b")]);
    await expectReceived(bob, "conversationNew", "a", "b");
  });

  test("a missed introduction reaches the sockets of the newcomer once", async () => {
    const { changeLog, node } = installation();
    changeLog.addConversation(OTHER_CHAT, "alice");
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    const invited = changeLog.commitJoin(OTHER_CHAT, "bob");
    await two.changes.catchUp();
    await expectReceived(bob, "conversationNew");
    await two.changes.catchUp();
    publishAll(one, invited);
    publishAll(one, [changeLog.commitMessage(OTHER_CHAT, "a")]);
    await expectReceived(bob, "conversationNew", "a");
  });

  test("a missed removal takes effect", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    changeLog.commitLeave(CHAT, "bob");
    await two.changes.catchUp();
    await expectReceived(bob, "conversationUpdated");
    signal(one, typing("alice"), { conversation: CHAT }, "alice");
    publishAll(one, [changeLog.commitMessage(CHAT, "secret")]);
    const carol = await two.connect("carol");
    publishAll(one, [changeLog.commitMessage(CHAT, "more")]);
    await until(() => received(carol).includes("more"), "carol received the later event");
    expect(received(bob)).toEqual(["conversationUpdated"]);
  });

  test("a missed removal takes effect before newer events", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    const [bob, carol] = [await two.connect("bob"), await two.connect("carol")];
    changeLog.commitLeave(CHAT, "bob");
    publishAll(one, [changeLog.commitMessage(CHAT, "secret")]);
    await expectReceived(carol, "conversationUpdated", "secret");
    expect(received(bob)).toEqual(["conversationUpdated"]);
  });

  test("a missed end of a session closes its sockets", async () => {
    const { changeLog, node } = installation();
    const two = await node();
    const [ended, other] = [await two.connect("bob", "s1"), await two.connect("bob", "s2")];
    changeLog.commitSessionEnd("s1");
    await two.changes.catchUp();
    expect(ended.closed).toEqual([{ code: closeCodes.signedOut, reason: expect.any(String) }]);
    expect(other.closed).toEqual([]);
  });

  test("clients are closed when a missed event is no longer in the log", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    changeLog.commitMessage(CHAT, "never published");
    changeLog.prune();
    publishAll(one, [changeLog.commitMessage(CHAT, "b")]);
    await until(() => bob.closed.length > 0, "bob's socket is closed");
    expect(bob.closed).toEqual([{ code: closeCodes.goingAway, reason: expect.any(String) }]);
    expect(received(bob)).toEqual([]);

    const back = await two.connect("bob");
    publishAll(one, [changeLog.commitMessage(CHAT, "c")]);
    await expectReceived(back, "c");
  });
});

describe("while NATS is down", () => {
  test("a node delivers its own events, and catches up on those of others after a reconnect", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    const [alice, bob] = [await one.connect("alice"), await two.connect("bob")];
    publishAll(one, [changeLog.commitMessage(CHAT, "before")]);
    await expectReceived(bob, "before");
    await nats.stop();
    await until(() => isDisconnected(one) && isDisconnected(two), "both nodes are disconnected");

    publishAll(one, [changeLog.commitMessage(CHAT, "one")]);
    await expectReceived(alice, "before", "one");
    publishAll(two, [changeLog.commitMessage(CHAT, "two")]);
    await expectReceived(bob, "before", "one", "two");
    publishAll(one, [changeLog.commitMessage(CHAT, "three")]);
    const carol = await two.connect("carol");
    publishAll(two, [changeLog.commitMessage(CHAT, "four")]);
    await expectReceived(bob, "before", "one", "two", "three", "four");
    publishAll(one, [changeLog.commitMessage(CHAT, "five")]);

    await nats.start();
    await expectReceived(alice, "before", "one", "two", "three", "four", "five");
    await expectReceived(bob, "before", "one", "two", "three", "four", "five");
    await until(() => received(carol).includes("five"), "carol caught up");
    await until(
      () => !isDisconnected(one) && !isDisconnected(two),
      "both nodes are connected again",
    );
    publishAll(one, [changeLog.commitMessage(CHAT, "after")]);
    await expectReceived(bob, "before", "one", "two", "three", "four", "five", "after");
  });

  test("events of other nodes are read from the log and delivered once and in order", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node({ awayMs: 10 }), await node({ awayMs: 10 })];
    const [alice, bob] = [await one.connect("alice"), await two.connect("bob")];
    await nats.stop();
    await until(() => isDisconnected(one) && isDisconnected(two), "both nodes are disconnected");
    publishAll(one, [changeLog.commitMessage(CHAT, "one"), changeLog.commitMessage(CHAT, "two")]);
    await expectReceived(bob, "one", "two");
    publishAll(two, [changeLog.commitMessage(CHAT, "three")]);
    await expectReceived(alice, "one", "two", "three");
    publishAll(one, [changeLog.commitRead(CHAT, "alice", 3)]);
    await expectReceived(bob, "one", "two", "three", "chatRead");
    publishAll(one, [changeLog.commitMessage(CHAT, "four")]);
    await expectReceived(bob, "one", "two", "three", "chatRead", "four");
    await nats.start();
    await until(
      () => !isDisconnected(one) && !isDisconnected(two),
      "both nodes are connected again",
    );
    publishAll(two, [changeLog.commitMessage(CHAT, "five")]);
    await expectReceived(alice, "one", "two", "three", "chatRead", "four", "five");
    await expectReceived(bob, "one", "two", "three", "chatRead", "four", "five");
  });

  test("joins, removals and ends of sessions take effect while NATS is down", async () => {
    const { changeLog, node } = installation();
    changeLog.addConversation(OTHER_CHAT, "alice");
    const [one, two] = [await node(), await node({ awayMs: 10 })];
    const [bob, carol] = [await two.connect("bob"), await two.connect("carol", "s1")];
    await nats.stop();
    await until(() => isDisconnected(one) && isDisconnected(two), "both nodes are disconnected");
    publishAll(one, changeLog.commitJoin(OTHER_CHAT, "bob"));
    publishAll(one, [changeLog.commitLeave(CHAT, "bob"), changeLog.commitMessage(CHAT, "secret")]);
    changeLog.commitSessionEnd("s1");
    await until(() => carol.closed.length > 0, "the session's socket is closed");
    await until(
      () => received(bob).includes("conversationNew"),
      "bob receives the other conversation",
    );
    publishAll(one, [changeLog.commitMessage(OTHER_CHAT, "first")]);
    await until(() => received(bob).includes("first"), "bob receives its events");
    expect(received(bob)).not.toContain("secret");
    await nats.start();
  });

  test("joins, removals and ends of sessions take effect after a reconnect", async () => {
    const { changeLog, node } = installation();
    changeLog.addConversation(OTHER_CHAT, "alice");
    const [one, two] = [await node(), await node()];
    const [bob, carol] = [await two.connect("bob"), await two.connect("carol", "s1")];
    await nats.stop();
    await until(() => isDisconnected(one) && isDisconnected(two), "both nodes are disconnected");
    publishAll(one, changeLog.commitJoin(OTHER_CHAT, "bob"));
    publishAll(one, [changeLog.commitLeave(CHAT, "bob"), changeLog.commitMessage(CHAT, "secret")]);
    changeLog.commitSessionEnd("s1");
    publishAll(one, [{ kind: "session_ended", session_id: "s1" }]);
    await nats.start();
    await until(() => carol.closed.length > 0, "the session ended");
    expect(carol.closed[0]?.code).toBe(closeCodes.signedOut);
    await until(() => received(bob).length === 2, "bob received both");
    expect(received(bob).toSorted()).toEqual(["conversationNew", "conversationUpdated"]);
  });

  test("a suspension closes no socket that the account opens after it was restored", async () => {
    const { changeLog, node } = installation();
    const [one, two, three] = [await node(), await node(), await node()];
    await untilDiscovered(one, two, three);
    const suspended = await two.connect("bob");
    const change = accountSuspended("bob");
    const isMissing = ({ bus }: TestNode) => bus.isMissing(change as LoggedChange);
    expect(isMissing(two)).toBe(true);
    publishAll(one, [change]);
    await until(() => suspended.closed.length > 0, "bob's socket is closed");
    expect(isMissing(two)).toBe(false);
    // One that NATS brings after the log.
    await three.bus.replay(change);
    const restored = await three.connect("bob");
    publishAll(one, [change, changeLog.commitMessage(CHAT, "later")]);
    await expectReceived(restored, "later");
    expect(restored.closed).toEqual([]);
  });

  test("missed uncounted changes are delivered after a reconnect", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    const [bob, dave] = [await two.connect("bob"), await two.connect("dave")];
    publishAll(one, [changeLog.commitMessage(CHAT, "a")]);
    await expectReceived(bob, "a");
    await nats.stop();
    await until(() => isDisconnected(one) && isDisconnected(two), "both nodes are disconnected");
    publishAll(one, [changeLog.commitRead(CHAT, "alice", 1)]);
    await nats.start();
    await expectReceived(bob, "a", "chatRead");
    expect(received(dave)).toEqual([]);
  });

  test("missed uncounted changes of a node that was considered gone are delivered once", async () => {
    const { changeLog, node } = installation();
    await using line = await FaultyProxy.to(`http://127.0.0.1:${nats.port}`);
    const one = await node({}, line.url.replace("http", "nats"));
    const two = await node();
    const bob = await two.connect("bob");
    line.refuse(true);
    line.cut();
    await until(() => two.cluster.others().length === 0, "the node is considered gone");
    await two.changes.catchUp();
    publishAll(one, [changeLog.commitRead(CHAT, "alice", 1)]);
    line.reset();
    await expectReceived(bob, "chatRead");
    await until(() => two.cluster.others().length === 1, "the node is back");
    await two.changes.catchUp();
    publishAll(two, [changeLog.commitMessage(CHAT, "after")]);
    await expectReceived(bob, "chatRead", "after");
  });

  test("uncounted changes that were received are not delivered again", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    publishAll(one, [changeLog.commitRead(CHAT, "alice", 1)]);
    await expectReceived(bob, "chatRead");
    changeLog.commitHide(CHAT, "bob", "missed");
    publishAll(one, [changeLog.commitHide(CHAT, "bob", "received")]);
    publishAll(one, [changeLog.commitHide(CHAT, "alice", "another's")]);
    await until(() => received(bob).includes("received"), "bob receives the published change");
    await nats.stop();
    await until(() => isDisconnected(one) && isDisconnected(two), "both nodes are disconnected");
    await nats.start();
    await until(() => received(bob).includes("missed"), "bob receives the missed change");
    await two.changes.catchUp();
    // Nodes that discover each other read the log too, perhaps before the published change arrives.
    expect(received(bob).toSorted()).toEqual(["chatRead", "missed", "received"]);
  });

  test("an uncounted change that arrives after it was read from the log is not delivered again", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    const read = changeLog.commitRead(CHAT, "alice", 1);
    await two.changes.catchUp();
    await expectReceived(bob, "chatRead");
    publishAll(one, [read, changeLog.commitMessage(CHAT, "after")]);
    await until(() => received(bob).includes("after"), "bob receives the later change");
    expect(received(bob)).toEqual(["chatRead", "after"]);
  });

  test("a change for several accounts reaches each of them once when some of it was missed", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    const [bob, carol] = [await two.connect("bob"), await two.connect("carol")];
    const change = changeLog.commitName("alice", ["alice", "bob", "carol"]);
    publishAll(one, [{ ...change, to: { users: ["bob"] } }]);
    await expectReceived(bob, "accountUpdated");
    await two.changes.catchUp();
    await expectReceived(carol, "accountUpdated");
    publishAll(one, [change, changeLog.commitMessage(CHAT, "after")]);
    await expectReceived(bob, "accountUpdated", "after");
    await expectReceived(carol, "accountUpdated", "after");
  });

  test("clients are closed when the log was pruned before the reconnect", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    await nats.stop();
    await until(() => isDisconnected(one) && isDisconnected(two), "both nodes are disconnected");
    changeLog.prune();
    await nats.start();
    await until(() => bob.closed.length > 0, "bob's socket is closed");
    expect(bob.closed[0]?.code).toBe(closeCodes.goingAway);
  });

  test("events of other nodes are found by polling the log", async () => {
    const { changeLog, node } = installation();
    const [one, two] = [await node(), await node({ everyMs: 20 })];
    const bob = await two.connect("bob");
    await nats.stop();
    await until(() => isDisconnected(one) && isDisconnected(two), "both nodes are disconnected");
    publishAll(one, [changeLog.commitMessage(CHAT, "one")]);
    await expectReceived(bob, "one");
    await nats.start();
    await until(
      () => !isDisconnected(one) && !isDisconnected(two),
      "both nodes are connected again",
    );
  });
});

describe("sessions and turns", () => {
  test("the end of a session closes its sockets on every node", async () => {
    const { node } = installation();
    const [one, two] = [await node(), await node()];
    const ended = [await one.connect("alice", "s1"), await two.connect("alice", "s1")];
    const other = await two.connect("alice", "s2");
    publishAll(one, [{ kind: "session_ended", session_id: "s1" }]);
    for (const client of ended) {
      await until(() => client.closed.length > 0, "the socket is closed");
      expect(client.closed[0]?.code).toBe(closeCodes.signedOut);
    }
    expect(other.closed).toEqual([]);
  });

  test("ended turns are sent to the nodes that run them", async () => {
    const { node } = installation();
    const [one, two, three] = [await node(), await node(), await node()];
    publishAll(one, [
      {
        kind: "turns_ended",
        turns: [
          { id: 1, node: two.id },
          { id: 2, node: one.id },
          { id: 3, node: null },
        ],
      },
      { kind: "turns_queued" },
    ]);
    publishAll(one, [{ kind: "turns_ended", turns: [{ id: 4, node: three.id }] }]);
    await until(() => two.turns.length > 0 && three.turns.length > 0, "both nodes received them");
    expect(two.turns).toEqual([{ kind: "turns_ended", turns: [{ id: 1, node: two.id }] }]);
    expect(three.turns).toEqual([{ kind: "turns_ended", turns: [{ id: 4, node: three.id }] }]);
    expect(one.turns.map(({ kind }) => kind)).toEqual([
      "turns_ended",
      "turns_queued",
      "turns_ended",
    ]);
  });
});

describe("the nodes", () => {
  test("nodes know each other and their socket counts until one is gone", async () => {
    const { node } = installation();
    const [one, two] = [await node(), await node()];
    await one.connect("alice");
    const late = await node();
    await untilDiscovered(one, two, late);
    await two.connect("alice");
    await until(() => late.hub.sockets("alice") === 2, "both sockets are counted");
    await two.bus.close();
    // Nodes that were paused consider each other gone, and come back.
    await until(
      () => late.cluster.others().join() === one.id && late.hub.sockets("alice") === 1,
      "the gone node is not known, and its socket is not counted",
    );
  });

  test("nodes discover each other again after NATS was down", async () => {
    const { node } = installation();
    const [one, two] = [await node(), await node()];
    const phone = await one.connect("alice");
    await untilDiscovered(one, two);
    await until(() => two.hub.sockets("alice") === 1, "the socket is counted");
    await nats.stop();
    await until(() => one.cluster.others().length === 0, "the nodes consider each other gone");
    phone.close(1000, "");
    await one.connect("bob");
    await nats.start();
    await untilDiscovered(one, two);
    await until(() => two.hub.sockets("bob") === 1, "the new socket is counted");
    expect(two.hub.sockets("alice")).toBe(0);
  });
});

describe("malformed messages", () => {
  test("malformed payloads on any subject are dropped", async () => {
    const { prefix, changeLog, node, foreignConnection } = installation();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    const other = await foreignConnection();
    const event = changeLog.commitMessage(CHAT, "a");
    const at = { conversation_id: CHAT, seq: 1 };
    const malformed = [
      "",
      "\n",
      "{",
      "null\n{}",
      "[]\n{}",
      "{}",
      "{}\nhello",
      `{"at":{"conversation_id":1}}\n{"method":"events.typing"}`,
      `{"at":{"conversation_id":"${CHAT}","seq":-1}}\n{"method":"events.typing"}`,
      `{"joins":{"conversation":"${CHAT}"}}\n{"method":"events.typing"}`,
      JSON.stringify({ kind: "session_ended" }),
      JSON.stringify({ kind: "turns_ended", turns: "all" }),
      JSON.stringify({ kind: "cluster", body: { say: "state", node: 3 } }),
      JSON.stringify({
        kind: "cluster",
        body: { say: "tell", node: "x", part: "sockets", item: at },
      }),
      "\uFFFD\u0000".repeat(1000),
    ];
    const subjects = [`c.${CHAT}`, "u.bob", "nodes", `n.${two.id}`];
    for (const subject of subjects) {
      for (const each of malformed) other.publish(`${prefix}.${subject}`, each);
      other.publish(`${prefix}.${subject}`, new Uint8Array([0xff, 0xfe, 0x0a, 0xc3, 0x28]));
    }
    await other.flush();
    publishAll(one, [event, changeLog.commitMessage(CHAT, "b")]);
    await expectReceived(bob, "a", "b");
    expect(bob.closed).toEqual([]);
  });
});

describe("the connection to NATS", () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-tls-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const file = (name: string) => join(folder, name);

  function bus(servers: string[], more: Partial<NatsBusOptions> = {}) {
    const lines: string[] = [];
    const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
    const { readConversation, readText } = new TestChangeLog();
    const node = Bun.randomUUIDv7();
    const made = createNatsBus({ servers, node, readConversation, readText, log, ...more });
    started.push({ [Symbol.asyncDispose]: () => made.close() });
    const logged = (message: string) => until(() => lines.join().includes(message), message);
    return {
      ready: () => made.ready(),
      onChange: made.onChange.bind(made),
      publish: made.publish.bind(made),
      connected: () => untilReady(made),
      refused: async () => {
        await logged("NATS_URL cannot be reached");
        await expect(made.ready()).rejects.toThrow("NATS");
      },
    };
  }

  test("a connection uses TLS with client certificates, a user and a password", async () => {
    using own = selfSigned();
    await using secure = await startNats(`
      authorization { user: parley, password: "p@ss/word" }
      tls { cert_file: "${own.cert}", key_file: "${own.key}",
            ca_file: "${own.cert}", verify: true }`);
    const to = (login: string) => [`tls://${login}localhost:${secure.port}`];
    const tls = { caFile: own.cert, certFile: own.cert, keyFile: own.key };

    const accepted = bus(to(`parley:${encodeURIComponent("p@ss/word")}@`), { tls });
    await accepted.connected();
    const refused = [
      bus(to("parley:wrong@"), { tls }),
      bus(to(""), { tls }),
      bus(to(`parley:${encodeURIComponent("p@ss/word")}@`), { tls: { ...tls, caFile: undefined } }),
    ];
    for (const each of refused) await each.refused();
  });

  test("a connection uses the token of the URL", async () => {
    await using secured = await startNats("authorization { token: secret }");
    const [right, wrong] = [
      bus([`nats://secret@127.0.0.1:${secured.port}`]),
      bus([`127.0.0.1:${secured.port}`]),
    ];
    await right.connected();
    await wrong.refused();
  });

  test("a connection uses a credentials file", async () => {
    const [operator, account, user] = [
      nkeys.createOperator(),
      nkeys.createAccount(),
      nkeys.createUser(),
    ];
    const limits = { subs: -1, data: -1, payload: -1 };
    const accountLimits = { ...limits, imports: -1, exports: -1, conn: -1, wildcards: true };
    const jwts = {
      operator: signed(operator, operator, { type: "operator" }),
      account: signed(operator, account, { type: "account", limits: accountLimits }),
      user: signed(account, user, { type: "user", ...limits }),
    };
    await using secured = await startNats(`
      operator: "${jwts.operator}"
      resolver: MEMORY
      resolver_preload: { ${account.getPublicKey()}: "${jwts.account}" }`);
    const seed = new TextDecoder().decode(user.getSeed());
    const section = (name: string, text: string) =>
      `-----BEGIN ${name}-----\n${text}\n------END ${name}------\n`;
    const credentialsFile = file("user.creds");
    writeFileSync(
      credentialsFile,
      section("NATS USER JWT", jwts.user) + section("USER NKEY SEED", seed),
    );
    await bus([secured.url], { credentialsFile }).connected();
    await bus([secured.url]).refused();
  });

  type Key = ReturnType<typeof nkeys.createUser>;
  /** A NATS JWT about one key, signed by another. */
  function signed(by: Key, of: Key, nats: object): string {
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const claims = {
      jti: Bun.randomUUIDv7(),
      iat: Math.floor(Date.now() / 1000),
      iss: by.getPublicKey(),
      sub: of.getPublicKey(),
      nats: { version: 2, ...nats },
    };
    const text = `${encode({ typ: "JWT", alg: "ed25519-nkey" })}.${encode(claims)}`;
    return `${text}.${Buffer.from(by.sign(Buffer.from(text))).toString("base64url")}`;
  }

  test("a connection that requires TLS fails without it", async () => {
    await bus([`tls://127.0.0.1:${nats.port}`]).refused();
  });

  test("a missing file throws immediately", () => {
    expect(() => bus([nats.url], { credentialsFile: file("missing.creds") })).toThrow(
      "missing.creds",
    );
    expect(() => bus([nats.url], { tls: { caFile: file("missing.pem") } })).toThrow("missing.pem");
  });

  test("a NATS server that hangs is noticed, and connected to again when it answers", async () => {
    const { node } = installation();
    await using proxy = await FaultyProxy.to(nats.url.replace(/^nats/, "http"));
    const { bus } = await node({}, proxy.url.replace(/^http/, "nats"));
    proxy.stall("toServer", "toClient");
    const isDown = () =>
      bus.ready().then(
        () => false,
        () => true,
      );
    await until(isDown, "the node notices that NATS does not answer");
    proxy.reset();
    await untilReady(bus);
  });

  test("a node works before NATS starts, and connects when it does", async () => {
    await using late = await startNats();
    await late.stop();
    const made = bus([late.url]);
    await expect(made.ready()).rejects.toThrow("NATS");
    const delivered: string[] = [];
    made.onChange((change) => delivered.push(change.kind));
    made.publish({ kind: "session_ended", session_id: "s1" });
    expect(delivered).toEqual(["session_ended"]);
    await late.start();
    await made.connected();
  });
});
