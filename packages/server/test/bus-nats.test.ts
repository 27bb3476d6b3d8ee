import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type NatsConnection, nkeys } from "@nats-io/transport-node";
import { closeCodes, type EventFrame } from "@parley/protocol";
import pino from "pino";
import { selfSigned } from "../../../tests/support/certificate.ts";
import { startNats, type TestNats } from "../../../tests/support/nats.ts";
import { FaultyLine } from "../../client/test/support/proxy.ts";
import { type NatsBusOptions, natsBus } from "../src/realtime/bus-nats.ts";
import { type FakeClient, human } from "./support/broker.ts";
import { Ledger, texts } from "./support/ledger.ts";
import {
  acquainted,
  type NodeOptions,
  startNode,
  type TestNode,
  untilReady,
} from "./support/nodes.ts";
import { until } from "./support/until.ts";

const ROOM = "0190f000-0000-7000-8000-000000000001";
const OTHER_ROOM = "0190f000-0000-7000-8000-000000000002";

let nats: TestNats;
beforeAll(async () => {
  nats = await startNats();
});
afterAll(() => nats[Symbol.asyncDispose]());

const started: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of started.splice(0)) await each[Symbol.asyncDispose]();
});

/** Nodes of an installation of their own: they share a store and a NATS. */
function world() {
  const prefix = `test${Bun.randomUUIDv7().replaceAll("-", "")}`;
  const ledger = new Ledger();
  ledger.open(ROOM, "alice", "bob", "carol");
  const node = async (options: NodeOptions = {}, url = nats.url): Promise<TestNode> => {
    const made = await startNode(url, ledger, { prefix, ...options });
    started.push(made);
    return made;
  };
  /** Somebody else who can publish anything. */
  const stranger = async (): Promise<NatsConnection> => {
    const connection = await connect({ servers: nats.url });
    started.push({ [Symbol.asyncDispose]: () => connection.close() });
    return connection;
  };
  return { prefix, ledger, node, stranger };
}

/** What a client has heard, as it came, without looking away from it. */
const heard = (client: FakeClient) => texts(client.heard.map((data) => JSON.parse(data)));

const hears = (client: FakeClient, ...expected: string[]) =>
  until(() => heard(client).length >= expected.length, `${expected} were heard`).then(() =>
    expect(heard(client)).toEqual(expected),
  );

const away = new WeakMap<TestNode, boolean>();
/** Asks, and says what the last answer was. */
function isAway(node: TestNode): boolean {
  node.bus.ready().then(
    () => away.set(node, false),
    () => away.set(node, true),
  );
  return away.get(node) ?? false;
}

const typing = (username: string): EventFrame => ({
  method: "events.typing",
  params: { conversation_id: ROOM, actor: human(username), is_typing: true },
});

describe("delivery", () => {
  test("events reach the sockets of every node, in the same order", async () => {
    const { ledger, node } = world();
    const [one, two, three] = [await node(), await node(), await node()];
    const clients = [
      await one.connect("alice"),
      await two.connect("bob"),
      await three.connect("carol"),
    ];
    one.hub.announce([ledger.say(ROOM, "a")]);
    one.hub.pass(typing("alice"), { conversation: ROOM }, "alice");
    one.hub.announce([ledger.say(ROOM, "b")]);
    await hears(clients[0] as FakeClient, "a", "b");
    await hears(clients[1] as FakeClient, "a", "typing", "b");
    await hears(clients[2] as FakeClient, "a", "typing", "b");
  });

  test("nodes that commit to one conversation in turns are heard in the order of the commits", async () => {
    const { ledger, node } = world();
    const nodes = [await node(), await node(), await node()];
    const names = ["alice", "bob", "carol"];
    const clients = await Promise.all(nodes.map((each, place) => each.connect(names[place] ?? "")));
    const expected: string[] = [];
    const late: (() => void)[] = [];
    for (let count = 0; count < 300; count++) {
      expected.push(`${count}`);
      const announcement = ledger.say(ROOM, `${count}`);
      const publish = () => nodes[count % 3]?.hub.announce([announcement]);
      // Some publish only after others have committed and published more.
      if (count % 7 === 0) late.push(publish);
      else publish();
      if (count % 11 === 0) for (const each of late.splice(0)) each();
      if (count % 50 === 0) await Bun.sleep(1);
    }
    for (const each of late) each();
    for (const client of clients) await hears(client, ...expected);
  });

  test("installations that share a NATS do not hear each other", async () => {
    const [ours, theirs] = [world(), world()];
    const [here, there] = [await ours.node(), await theirs.node()];
    const [alice, other] = [await here.connect("alice"), await there.connect("alice")];
    here.hub.announce([ours.ledger.say(ROOM, "ours")]);
    there.hub.announce([theirs.ledger.say(ROOM, "theirs")]);
    await hears(alice, "ours");
    await hears(other, "theirs");
  });

  test("words of a message that has ended elsewhere are not told after its end", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    const word = (id: string): EventFrame => ({
      method: "events.messageDelta",
      params: { id, delta: "word", offset: 4 },
    });
    two.hub.announce([ledger.complete(ROOM, "ended")]);
    one.hub.pass(word("ended"), { conversation: ROOM });
    one.hub.pass(word("another"), { conversation: ROOM });
    one.hub.announce([ledger.say(ROOM, "after")]);
    await hears(bob, "messageComplete", "messageDelta", "after");
  });

  test("events for accounts reach their sockets wherever they are, without the one that asked", async () => {
    const { node } = world();
    const [one, two] = [await node(), await node()];
    const [asking, other, bob] = [
      await one.connect("alice"),
      await two.connect("alice"),
      await two.connect("bob"),
    ];
    const frame: EventFrame = {
      method: "events.messageDeleted",
      params: { conversation_id: ROOM, ids: ["hidden"] },
    };
    one.hub.announce([{ frame, to: { users: ["alice"] }, exceptSocket: asking.id }]);
    one.hub.announce([{ frame, to: { users: ["bob"] } }]);
    await hears(other, "hidden");
    await hears(bob, "hidden");
    expect(heard(asking)).toEqual([]);
  });

  test("a new display name is that of the sockets on every node", async () => {
    const { node } = world();
    const [one, two] = [await node(), await node()];
    await two.connect("alice");
    const params = { ...human("alice"), display_name: "Alice the Second" };
    const frame: EventFrame = { method: "events.accountUpdated", params };
    one.hub.announce([{ frame, to: { users: ["alice"] } }]);
    const name = () => two.hub.person("alice")?.account.display_name;
    await until(() => name() === "Alice the Second", "the new name");
  });

  test("a conversation is followed only while one of its people is here", async () => {
    const { prefix, ledger, node, stranger } = world();
    const [one, two] = [await node(), await node()];
    const spy = await stranger();
    const isFollowed = async () => {
      const header = JSON.stringify({});
      await spy.flush();
      const asked = spy.request(`${prefix}.c.${ROOM}`, `${header}\n{"method":"events.typing"}`, {
        timeout: 50,
      });
      // Without anybody who follows it NATS says so at once; otherwise nobody answers.
      const error = await asked.then(
        () => null,
        (refusal: Error) => refusal,
      );
      return !/no responders/i.test(String(error));
    };
    expect(await isFollowed()).toBe(false);
    const [phone, laptop] = [await two.connect("bob"), await two.connect("bob")];
    expect(await isFollowed()).toBe(true);
    phone.close(1000, "");
    expect(await isFollowed()).toBe(true);
    laptop.close(1000, "");
    while (await isFollowed());
    const back = await two.connect("bob");
    one.hub.announce([ledger.say(ROOM, "again")]);
    await until(() => heard(back).includes("again"), "it is followed again");
  });

  test("a client that connects while events pass by misses none after its hello", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node(), await node()];
    let count = 0;
    const talking = setInterval(() => one.hub.announce([ledger.say(ROOM, `${count++}`)]), 0);
    for (let round = 0; round < 20; round++) {
      const client = await two.connect(round % 2 ? "bob" : "carol");
      const known = ledger.counters("bob")[0]?.seq ?? 0;
      const places = () =>
        client.heard
          .map((data) => (JSON.parse(data) as EventFrame).at?.seq ?? 0)
          .filter((seq) => seq > known);
      await until(() => places().length >= 3, "three events");
      expect(places().slice(0, 3)).toEqual([known + 1, known + 2, known + 3]);
      if (round % 3) client.close(1000, "");
    }
    clearInterval(talking);
  });
});

describe("membership", () => {
  test("whoever joins hears of it, and then everything, on whichever node", async () => {
    const { ledger, node } = world();
    ledger.open(OTHER_ROOM, "alice");
    const [one, two] = [await node(), await node()];
    const alice = await one.connect("alice");
    const bob = [await two.connect("bob"), await two.connect("bob")];
    one.hub.announce(ledger.join(OTHER_ROOM, "bob"));
    for (let count = 0; count < 20; count++) one.hub.announce([ledger.say(OTHER_ROOM, `${count}`)]);
    const after = Array.from({ length: 20 }, (_, place) => `${place}`);
    for (const client of bob) await hears(client, "conversationNew", ...after);
    await hears(alice, "conversationUpdated", ...after);
  });

  test("whoever leaves hears that as the last thing, on whichever node", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node(), await node()];
    const [bob, carol] = [await two.connect("bob"), await two.connect("carol")];
    one.hub.announce([ledger.leave(ROOM, "bob"), ledger.say(ROOM, "secret")]);
    await hears(carol, "conversationUpdated", "secret");
    expect(heard(bob)).toEqual(["conversationUpdated"]);
  });

  test("an invitation that is overtaken by the removal lets nobody listen", async () => {
    const { ledger, node } = world();
    ledger.open(OTHER_ROOM, "alice", "carol");
    const [one, two, three] = [await node(), await node(), await node()];
    const [bob, carol] = [await three.connect("bob"), await three.connect("carol")];
    const invited = ledger.join(OTHER_ROOM, "bob");
    two.hub.announce([ledger.leave(OTHER_ROOM, "bob")]);
    await hears(carol, "conversationUpdated", "conversationUpdated");
    one.hub.announce(invited);
    one.hub.announce([ledger.say(OTHER_ROOM, "secret")]);
    await hears(carol, "conversationUpdated", "conversationUpdated", "secret");
    expect(heard(bob)).not.toContain("secret");
  });
});

describe("what was missed", () => {
  test("is delivered before anything newer when a publisher died after its commit", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    one.hub.announce([ledger.say(ROOM, "a")]);
    ledger.say(ROOM, "never published");
    one.hub.announce([ledger.say(ROOM, "b")]);
    await hears(bob, "a", "never published", "b");
  });

  test("is found without anything newer", async () => {
    const { ledger, node } = world();
    const two = await node({ healMs: 20 });
    const bob = await two.connect("bob");
    ledger.say(ROOM, "never published");
    await hears(bob, "never published");
  });

  test("is looked for when the process has stood still", async () => {
    const { ledger, node } = world();
    const two = await node({ watchMs: 5 });
    const bob = await two.connect("bob");
    ledger.say(ROOM, "never published");
    Bun.sleepSync(50);
    await hears(bob, "never published");
  });

  test("is found when its node is gone, though no counter counts it", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    await acquainted(one, two);
    ledger.read(ROOM, "alice", 1);
    await one.bus.close();
    await hears(bob, "chatRead");
  });

  test("is not looked for when a node takes its leave or has just begun", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    await acquainted(one, two);
    // Whoever doubts now has to send everybody back.
    ledger.forgetUncounted();
    one.cluster.stop();
    await until(() => two.cluster.others().length === 0, "it has gone");
    await acquainted(await node(), two);
    await two.healer.now();
    one.hub.announce([ledger.say(ROOM, "still here")]);
    await hears(bob, "still here");
    expect(bob.closed).toEqual([]);
  });

  test("does not overtake what is told while it is looked for", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    await nats.stop();
    await until(() => isAway(one) && isAway(two), "the loss was noticed");
    ledger.hide(ROOM, "bob", "old");
    const gate = Promise.withResolvers<void>();
    ledger.gate = gate.promise;
    await nats.start();
    await until(() => ledger.isAsked, "the store is asked");
    await until(() => !isAway(one) && !isAway(two), "the link is back");
    one.hub.announce([ledger.hide(ROOM, "bob", "new")]);
    await hears(bob, "new");
    gate.resolve();
    await hears(bob, "new", "old", "new");
  });

  test("is found again after the store could not be asked", async () => {
    const { ledger, node } = world();
    const two = await node({ healMs: 20 });
    const bob = await two.connect("bob");
    ledger.broken = true;
    ledger.say(ROOM, "never published");
    await two.healer.now();
    expect(heard(bob)).toEqual([]);
    ledger.broken = false;
    await hears(bob, "never published");
  });

  test("an invitation reaches the sockets of the newcomer, once", async () => {
    const { ledger, node } = world();
    ledger.open(OTHER_ROOM, "alice");
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    const invited = ledger.join(OTHER_ROOM, "bob");
    await two.healer.now();
    await hears(bob, "conversationNew");
    await two.healer.now();
    one.hub.announce(invited);
    one.hub.announce([ledger.say(OTHER_ROOM, "a")]);
    await hears(bob, "conversationNew", "a");
  });

  test("a removal takes effect", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    ledger.leave(ROOM, "bob");
    await two.healer.now();
    await hears(bob, "conversationUpdated");
    one.hub.pass(typing("alice"), { conversation: ROOM }, "alice");
    one.hub.announce([ledger.say(ROOM, "secret")]);
    const carol = await two.connect("carol");
    one.hub.announce([ledger.say(ROOM, "more")]);
    await until(() => heard(carol).includes("more"), "carol heard what came later");
    expect(heard(bob)).toEqual(["conversationUpdated"]);
  });

  test("a removal takes effect before anything newer", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node(), await node()];
    const [bob, carol] = [await two.connect("bob"), await two.connect("carol")];
    ledger.leave(ROOM, "bob");
    one.hub.announce([ledger.say(ROOM, "secret")]);
    await hears(carol, "conversationUpdated", "secret");
    expect(heard(bob)).toEqual(["conversationUpdated"]);
  });

  test("the end of a session closes its sockets", async () => {
    const { ledger, node } = world();
    const two = await node();
    const [ended, other] = [await two.connect("bob", "s1"), await two.connect("bob", "s2")];
    ledger.ended.add("s1");
    await two.healer.now();
    expect(ended.closed).toEqual([{ code: closeCodes.signedOut, reason: expect.any(String) }]);
    expect(other.closed).toEqual([]);
  });

  test("sockets are sent back when it is no longer kept", async () => {
    const { ledger, node } = world();
    ledger.open(OTHER_ROOM, "carol");
    const [one, two] = [await node(), await node()];
    const [bob, dave] = [await two.connect("bob"), await two.connect("carol")];
    ledger.leave(ROOM, "carol");
    await two.healer.now();
    await hears(bob, "conversationUpdated");
    ledger.say(ROOM, "never published");
    ledger.forget(ROOM, 2);
    one.hub.announce([ledger.say(ROOM, "b")]);
    await until(() => bob.closed.length > 0, "bob was sent back");
    expect(bob.closed).toEqual([{ code: closeCodes.goingAway, reason: expect.any(String) }]);
    expect(heard(bob)).toEqual(["conversationUpdated"]);
    expect(dave.closed).toEqual([]);

    const back = await two.connect("bob");
    one.hub.announce([ledger.say(ROOM, "c")]);
    await hears(back, "c");
  });
});

describe("while NATS is away", () => {
  test("a node delivers its own events, and catches up on the others' when it is back", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node(), await node()];
    const [alice, bob] = [await one.connect("alice"), await two.connect("bob")];
    one.hub.announce([ledger.say(ROOM, "before")]);
    await hears(bob, "before");
    await nats.stop();
    await until(() => isAway(one) && isAway(two), "the loss was noticed");

    one.hub.announce([ledger.say(ROOM, "one")]);
    await hears(alice, "before", "one");
    two.hub.announce([ledger.say(ROOM, "two")]);
    await hears(bob, "before", "one", "two");
    one.hub.announce([ledger.say(ROOM, "three")]);
    const carol = await two.connect("carol");
    two.hub.announce([ledger.say(ROOM, "four")]);
    await hears(bob, "before", "one", "two", "three", "four");
    one.hub.announce([ledger.say(ROOM, "five")]);

    await nats.start();
    await hears(alice, "before", "one", "two", "three", "four", "five");
    await hears(bob, "before", "one", "two", "three", "four", "five");
    await until(() => heard(carol).includes("five"), "carol caught up");
    await until(() => !isAway(one) && !isAway(two), "the link is back");
    one.hub.announce([ledger.say(ROOM, "after")]);
    await hears(bob, "before", "one", "two", "three", "four", "five", "after");
  });

  test("other nodes' events come from the log, once and in order", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node({ awayMs: 10 }), await node({ awayMs: 10 })];
    const [alice, bob] = [await one.connect("alice"), await two.connect("bob")];
    await nats.stop();
    await until(() => isAway(one) && isAway(two), "the loss was noticed");
    one.hub.announce([ledger.say(ROOM, "one"), ledger.say(ROOM, "two")]);
    await hears(bob, "one", "two");
    two.hub.announce([ledger.say(ROOM, "three")]);
    await hears(alice, "one", "two", "three");
    one.hub.announce([ledger.read(ROOM, "alice", 3)]);
    await hears(bob, "one", "two", "three", "chatRead");
    one.hub.announce([ledger.say(ROOM, "four")]);
    await hears(bob, "one", "two", "three", "chatRead", "four");
    await nats.start();
    await until(() => !isAway(one) && !isAway(two), "the link is back");
    two.hub.announce([ledger.say(ROOM, "five")]);
    await hears(alice, "one", "two", "three", "chatRead", "four", "five");
    await hears(bob, "one", "two", "three", "chatRead", "four", "five");
  });

  test("joins, removals and the ends of sessions take effect while it stays away", async () => {
    const { ledger, node } = world();
    ledger.open(OTHER_ROOM, "alice");
    const [one, two] = [await node(), await node({ awayMs: 10 })];
    const [bob, carol] = [await two.connect("bob"), await two.connect("carol", "s1")];
    await nats.stop();
    await until(() => isAway(one) && isAway(two), "the loss was noticed");
    one.hub.announce(ledger.join(OTHER_ROOM, "bob"));
    one.hub.announce([ledger.leave(ROOM, "bob"), ledger.say(ROOM, "secret")]);
    ledger.ended.add("s1");
    await until(() => carol.closed.length > 0, "the session's socket is closed");
    await until(() => heard(bob).includes("conversationNew"), "bob is told of the other room");
    one.hub.announce([ledger.say(OTHER_ROOM, "welcome")]);
    await until(() => heard(bob).includes("welcome"), "bob hears the other room");
    expect(heard(bob)).not.toContain("secret");
    await nats.start();
  });

  test("joins, removals and the ends of sessions take effect when it is back", async () => {
    const { ledger, node } = world();
    ledger.open(OTHER_ROOM, "alice");
    const [one, two] = [await node(), await node()];
    const [bob, carol] = [await two.connect("bob"), await two.connect("carol", "s1")];
    await nats.stop();
    await until(() => isAway(one) && isAway(two), "the loss was noticed");
    one.hub.announce(ledger.join(OTHER_ROOM, "bob"));
    one.hub.announce([ledger.leave(ROOM, "bob"), ledger.say(ROOM, "secret")]);
    ledger.ended.add("s1");
    one.hub.announce([{ endedSession: "s1" }]);
    await nats.start();
    await until(() => carol.closed.length > 0, "the session ended");
    expect(carol.closed[0]?.code).toBe(closeCodes.signedOut);
    await until(() => heard(bob).length === 2, "bob knows");
    expect(heard(bob).toSorted()).toEqual(["conversationNew", "conversationUpdated"]);
  });

  test("changes that no counter counts are made up for when it is back", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node(), await node()];
    const [bob, dave] = [await two.connect("bob"), await two.connect("dave")];
    one.hub.announce([ledger.say(ROOM, "a")]);
    await hears(bob, "a");
    await nats.stop();
    await until(() => isAway(one) && isAway(two), "the loss was noticed");
    one.hub.announce([ledger.read(ROOM, "alice", 1)]);
    await nats.start();
    await hears(bob, "a", "chatRead");
    expect(heard(dave)).toEqual([]);
  });

  test("so are those of a node that could not say so, and was given up", async () => {
    const { ledger, node } = world();
    await using line = await FaultyLine.to(`http://127.0.0.1:${nats.port}`);
    const one = await node({}, line.url.replace("http", "nats"));
    const two = await node();
    const bob = await two.connect("bob");
    line.refuse(true);
    line.cut();
    await until(() => two.cluster.others().length === 0, "it was given up");
    await two.healer.now();
    one.hub.announce([ledger.read(ROOM, "alice", 1)]);
    line.calm();
    await hears(bob, "chatRead");
    await until(() => two.cluster.others().length === 1, "it is back");
    await two.healer.now();
    two.hub.announce([ledger.say(ROOM, "once is enough")]);
    await hears(bob, "chatRead", "once is enough");
  });

  test("those that were heard are heard again only after one that was not", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    one.hub.announce([ledger.read(ROOM, "alice", 1)]);
    await hears(bob, "chatRead");
    ledger.hide(ROOM, "bob", "missed");
    one.hub.announce([ledger.hide(ROOM, "bob", "heard")]);
    one.hub.announce([ledger.hide(ROOM, "alice", "another's")]);
    await hears(bob, "chatRead", "heard");
    await nats.stop();
    await until(() => isAway(one) && isAway(two), "the loss was noticed");
    await nats.start();
    await hears(bob, "chatRead", "heard", "missed", "heard");
  });

  test("whoever may have missed too many of those is sent back", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    await nats.stop();
    await until(() => isAway(one) && isAway(two), "the loss was noticed");
    ledger.forgetUncounted();
    await nats.start();
    await until(() => bob.closed.length > 0, "bob was sent back");
    expect(bob.closed[0]?.code).toBe(closeCodes.goingAway);
  });

  test("the store is asked all the same, so that events come late but come", async () => {
    const { ledger, node } = world();
    const [one, two] = [await node(), await node({ healMs: 20 })];
    const bob = await two.connect("bob");
    await nats.stop();
    await until(() => isAway(one) && isAway(two), "the loss was noticed");
    one.hub.announce([ledger.say(ROOM, "one")]);
    await hears(bob, "one");
    await nats.start();
    await until(() => !isAway(one) && !isAway(two), "the link is back");
  });
});

describe("sessions and turns", () => {
  test("the end of a session closes its sockets on every node", async () => {
    const { node } = world();
    const [one, two] = [await node(), await node()];
    const ended = [await one.connect("alice", "s1"), await two.connect("alice", "s1")];
    const other = await two.connect("alice", "s2");
    one.hub.announce([{ endedSession: "s1" }]);
    for (const client of ended) {
      await until(() => client.closed.length > 0, "it was closed");
      expect(client.closed[0]?.code).toBe(closeCodes.signedOut);
    }
    expect(other.closed).toEqual([]);
  });

  test("turns that ended are told to the node that runs them", async () => {
    const { node } = world();
    const [one, two, three] = [await node(), await node(), await node()];
    one.hub.announce([
      {
        endedTurns: [
          { id: 1, node: two.id },
          { id: 2, node: one.id },
          { id: 3, node: null },
        ],
      },
      { queuedTurns: true },
    ]);
    one.hub.announce([{ endedTurns: [{ id: 4, node: three.id }] }]);
    await until(() => two.turns.length > 0 && three.turns.length > 0, "both were told");
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
  test("know each other and how many sockets each has, until one is gone", async () => {
    const { node } = world();
    const [one, two] = [await node(), await node()];
    await one.connect("alice");
    const late = await node();
    await acquainted(one, two, late);
    await two.connect("alice");
    await until(() => late.hub.sockets("alice") === 2, "both are counted");
    await two.bus.close();
    await until(() => late.hub.sockets("alice") === 1, "the one that is gone is forgotten");
    expect(late.cluster.others()).toEqual([one.id]);
  });

  test("know each other again after NATS was away", async () => {
    const { node } = world();
    const [one, two] = [await node(), await node()];
    const phone = await one.connect("alice");
    await acquainted(one, two);
    await until(() => two.hub.sockets("alice") === 1, "it is counted");
    await nats.stop();
    await until(() => one.cluster.others().length === 0, "they have lost each other");
    phone.close(1000, "");
    await one.connect("bob");
    await nats.start();
    await acquainted(one, two);
    await until(() => two.hub.sockets("bob") === 1, "what came is counted");
    expect(two.hub.sockets("alice")).toBe(0);
  });
});

test("deltas of a node of an earlier version are delivered", async () => {
  const { prefix, node, stranger } = world();
  const bob = await (await node()).connect("bob");
  const older = await stranger();
  const header = JSON.stringify({ stream: { message: "m1", from: 0, to: 4, ends: false } });
  const params = { id: "m1", delta: "word", offset: 4 };
  const frame = JSON.stringify({ method: "events.messageDelta", params });
  older.publish(`${prefix}.c.${ROOM}`, `${header}\n${frame}`);
  await hears(bob, "messageDelta");
});

describe("what is not ours", () => {
  test("rubbish on any subject is let go by", async () => {
    const { prefix, ledger, node, stranger } = world();
    const [one, two] = [await node(), await node()];
    const bob = await two.connect("bob");
    const other = await stranger();
    const event = ledger.say(ROOM, "a");
    const at = { conversation_id: ROOM, seq: 1 };
    const rubbish = [
      "",
      "\n",
      "{",
      "null\n{}",
      "[]\n{}",
      "{}",
      "{}\nhello",
      `{"at":{"conversation_id":1}}\n{"method":"events.typing"}`,
      `{"at":{"conversation_id":"${ROOM}","seq":-1}}\n{"method":"events.typing"}`,
      `{"joins":{"conversation":"${ROOM}"}}\n{"method":"events.typing"}`,
      JSON.stringify({ kind: "session_ended" }),
      JSON.stringify({ kind: "turns_ended", turns: "all" }),
      JSON.stringify({ kind: "cluster", body: { say: "state", node: 3 } }),
      JSON.stringify({
        kind: "cluster",
        body: { say: "tell", node: "x", part: "sockets", item: at },
      }),
      "\uFFFD\u0000".repeat(1000),
    ];
    const subjects = [`c.${ROOM}`, "u.bob", "nodes", `n.${two.id}`];
    for (const subject of subjects) {
      for (const each of rubbish) other.publish(`${prefix}.${subject}`, each);
      other.publish(`${prefix}.${subject}`, new Uint8Array([0xff, 0xfe, 0x0a, 0xc3, 0x28]));
    }
    await other.flush();
    one.hub.announce([event, ledger.say(ROOM, "b")]);
    await hears(bob, "a", "b");
    expect(bob.closed).toEqual([]);
  });
});

describe("the connection", () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-tls-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const file = (name: string) => join(folder, name);

  function bus(servers: string[], more: Partial<NatsBusOptions> = {}) {
    const lines: string[] = [];
    const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
    const made = natsBus({ servers, node: Bun.randomUUIDv7(), events: new Ledger(), log, ...more });
    started.push({ [Symbol.asyncDispose]: () => made.close() });
    const said = (message: string) => until(() => lines.join().includes(message), message);
    return {
      ...made,
      connected: () => untilReady(made),
      refused: async () => {
        await said("NATS cannot be reached");
        await expect(made.ready()).rejects.toThrow("NATS");
      },
    };
  }

  test("is encrypted, with names and passwords, and certificates on both sides", async () => {
    using own = selfSigned();
    await using secure = await startNats(`
      authorization { user: parley, password: "p@ss/word" }
      tls { cert_file: "${own.cert}", key_file: "${own.key}",
            ca_file: "${own.cert}", verify: true }`);
    const to = (who: string) => [`tls://${who}localhost:${secure.port}`];
    const tls = { caFile: own.cert, certFile: own.cert, keyFile: own.key };

    const welcome = bus(to(`parley:${encodeURIComponent("p@ss/word")}@`), { tls });
    await welcome.connected();
    const refused = [
      bus(to("parley:wrong@"), { tls }),
      bus(to(""), { tls }),
      bus(to(`parley:${encodeURIComponent("p@ss/word")}@`), { tls: { ...tls, caFile: undefined } }),
    ];
    for (const each of refused) await each.refused();
  });

  test("takes a token from the address", async () => {
    await using guarded = await startNats("authorization { token: secret }");
    const [right, wrong] = [
      bus([`nats://secret@127.0.0.1:${guarded.port}`]),
      bus([`127.0.0.1:${guarded.port}`]),
    ];
    await right.connected();
    await wrong.refused();
  });

  test("takes a credentials file", async () => {
    const [operator, account, user] = [
      nkeys.createOperator(),
      nkeys.createAccount(),
      nkeys.createUser(),
    ];
    const limits = { subs: -1, data: -1, payload: -1 };
    const accountLimits = { ...limits, imports: -1, exports: -1, conn: -1, wildcards: true };
    const told = {
      operator: signed(operator, operator, { type: "operator" }),
      account: signed(operator, account, { type: "account", limits: accountLimits }),
      user: signed(account, user, { type: "user", ...limits }),
    };
    await using guarded = await startNats(`
      operator: "${told.operator}"
      resolver: MEMORY
      resolver_preload: { ${account.getPublicKey()}: "${told.account}" }`);
    const seed = new TextDecoder().decode(user.getSeed());
    const section = (name: string, text: string) =>
      `-----BEGIN ${name}-----\n${text}\n------END ${name}------\n`;
    const credentialsFile = file("user.creds");
    writeFileSync(
      credentialsFile,
      section("NATS USER JWT", told.user) + section("USER NKEY SEED", seed),
    );
    await bus([guarded.url], { credentialsFile }).connected();
    await bus([guarded.url]).refused();
  });

  type Key = ReturnType<typeof nkeys.createUser>;
  /** What one key says of another, as NATS has it. */
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

  test("that insists on TLS does not make do without", async () => {
    await bus([`tls://127.0.0.1:${nats.port}`]).refused();
  });

  test("a file that is not there is told of at once", () => {
    expect(() => bus([nats.url], { credentialsFile: file("missing.creds") })).toThrow(
      "missing.creds",
    );
    expect(() => bus([nats.url], { tls: { caFile: file("missing.pem") } })).toThrow("missing.pem");
  });

  test("comes about when NATS starts later, and everything works until then", async () => {
    await using late = await startNats();
    await late.stop();
    const made = bus([late.url]);
    await expect(made.ready()).rejects.toThrow("NATS");
    const heardHere: string[] = [];
    made.onPacket((packet) => heardHere.push(packet.kind));
    made.publish({ kind: "session_ended", session_id: "s1" });
    expect(heardHere).toEqual(["session_ended"]);
    await late.start();
    await made.connected();
  });
});
