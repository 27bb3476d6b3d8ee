import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { closeCodes } from "@parley/protocol";
import pino from "pino";
import type { Bus, Channel, Delivered } from "../src/changes/bus.ts";
import { createMemoryBus } from "../src/changes/bus-memory.ts";
import { personTyping } from "../src/changes/change.ts";
import { type Cluster, createCluster } from "../src/changes/cluster.ts";
import { createHub } from "../src/realtime/hub.ts";
import { createPresence } from "../src/realtime/presence.ts";
import { countSockets } from "../src/realtime/sockets.ts";
import { Failure } from "../src/rules/failure.ts";
import { createFailureThrottle, type FailureThrottle } from "../src/security/failure-throttle.ts";
import { createThrottle, type Throttle } from "../src/security/throttle.ts";
import { broker, FakeClient, human } from "./support/broker.ts";

const CHAT = "0190f000-0000-7000-8000-000000000001";
const OTHER_CHAT = "0190f000-0000-7000-8000-000000000002";
const EXPIRES_MS = 6000;
/** By when a node that is silent is gone. */
const NODE_TIMEOUT_MS = 5000;
const LIMIT = 3;
const log = pino({ level: "silent" });

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/**
 * Nodes whose messages to each other stay in transit until `deliverAll` is called, so that tests can
 * make changes on two nodes at the same time. Events are delivered immediately.
 */
function testCluster() {
  const channels = new Map<string, { receive(body: unknown): void; up(): void }>();
  const buses: ((packet: Delivered) => void)[] = [];
  const disconnected = new Set<string>();
  const dead = new Set<string>();
  let inTransit: { to: string; arrive: () => void }[] = [];
  let nodeCount = 0;

  async function deliverAll(): Promise<void> {
    // Socket counts that change in one iteration of the event loop are sent after it.
    await turn();
    while (inTransit.length > 0) {
      const all = inTransit;
      inTransit = [];
      for (const { arrive } of all) arrive();
      await turn();
    }
  }
  /** Delivers messages until one has arrived at the node. */
  function deliverOneTo(node: string): void {
    for (let next = inTransit.shift(); next; next = inTransit.shift()) {
      next.arrive();
      if (next.to === node) return;
    }
  }
  const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));

  /** Advances the clock, and delivers the messages sent meanwhile. */
  async function advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      jest.advanceTimersByTime(Math.min(100, left));
      await deliverAll();
    }
  }

  function channel(node: string): Channel {
    const send = (to: string, body: unknown) => {
      const text = JSON.stringify(body);
      if (disconnected.has(node)) return;
      const arrive = () => {
        if (!disconnected.has(to)) channels.get(to)?.receive(JSON.parse(text));
      };
      inTransit.push({ to, arrive });
    };
    const own = { receive: (_: unknown) => {}, up: () => {} };
    channels.set(node, own);
    return {
      node,
      broadcast: (body) => {
        for (const other of channels.keys()) if (other !== node) send(other, body);
      },
      send,
      onMessage: (listener) => {
        own.receive = listener;
      },
      onUp: (listener) => {
        own.up = listener;
      },
    };
  }

  function bus(node: string): Bus {
    return {
      ...createMemoryBus(),
      onChange: (listener) => void buses.push(listener),
      publish: (change) => {
        if (!dead.has(node)) for (const deliver of buses) deliver(change);
      },
    };
  }

  function node(id = `node-${++nodeCount}`) {
    const cluster = createCluster(channel(id), { log });
    const { clients, publish } = broker();
    const own = bus(id);
    const hub = createHub(own, publish, countSockets(cluster, LIMIT));
    own.onChange(hub.receive);
    const seen: string[] = [];
    const presence = createPresence({
      hub,
      cluster,
      store: {
        among: async (_, others) =>
          others.map((username) => ({ username, seen_at: null, own_seen_at: null })),
        note: async (people) => void seen.push(...people.map(({ username }) => username)),
      },
      failed: (error) => {
        throw error;
      },
    });
    cluster.start();
    const type = (username: string, chat: string, isTyping: boolean) =>
      own.publish(personTyping(chat, human(username), isTyping));
    let account = 0;
    function connect(username: string, ...conversations: string[]): FakeClient {
      const client = new FakeClient(Bun.randomUUIDv7(), `session-${username}`);
      clients.add(client);
      const record = {
        ...human(username),
        id: ++account,
        owner_id: null,
        provider: null,
        suspended_at: null,
        erased_at: null,
      };
      const person = hub.enter(record, client);
      client.onClose = () => {
        clients.delete(client);
        hub.leave(person, client);
      };
      hub.listen(
        person,
        client,
        conversations.map((uuid) => ({ uuid, seq: 0 })),
      );
      return client;
    }
    return {
      id,
      cluster,
      hub,
      presence,
      /** Those of whom this node has stored when they were last online, since the last call. */
      noted: () => seen.splice(0),
      connect,
      start: (username: string, chat = CHAT) => type(username, chat, true),
      stop: (username: string, chat = CHAT) => type(username, chat, false),
      /** Connects the node: the first time, or again. */
      up: () => {
        disconnected.delete(id);
        channels.get(id)?.up();
        return deliverAll();
      },
      /** Connects the node, without delivering what it sends. */
      introduce: () => channels.get(id)?.up(),
      /** Disconnects the node. */
      down: () => void disconnected.add(id),
      /** Connects the node again without letting it know, as after a pause of its process. */
      resume: () => void disconnected.delete(id),
      /** Ends the node without a message to the others. */
      die: () => {
        disconnected.add(id);
        dead.add(id);
        cluster.stop();
      },
    };
  }

  /** Starts nodes that know each other. */
  async function nodes(count: number) {
    const all = Array.from({ length: count }, () => node());
    for (const each of all) await each.up();
    return all as [Node, Node, Node];
  }
  type Node = ReturnType<typeof node>;
  return { node, nodes, deliverOneTo, deliverAll, advance };
}

const shown = (client: FakeClient) =>
  client.events().map((event) => {
    if (event.method !== "events.typing") throw new Error(`${event.method} was not expected`);
    return event.params.is_typing;
  });

const close = (client: FakeClient) => client.close(1000, "");

describe("the nodes", () => {
  test("nodes know each other, whenever they started", async () => {
    const { node, nodes, advance } = testCluster();
    const [one, two] = await nodes(2);
    const three = node();
    await three.up();
    expect(one.cluster.others().toSorted()).toEqual([two.id, three.id]);
    expect(three.cluster.others().toSorted()).toEqual([one.id, two.id]);
    await advance(60_000);
    expect(one.cluster.others().toSorted()).toEqual([two.id, three.id]);
  });

  test("a silent node is removed after the timeout, a stopped one immediately", async () => {
    const { nodes, advance, deliverAll } = testCluster();
    const [one, two, three] = await nodes(3);
    two.die();
    await advance(NODE_TIMEOUT_MS - 2000);
    expect(one.cluster.others()).toContain(two.id);
    await advance(2000);
    expect(one.cluster.others()).toEqual([three.id]);
    three.cluster.stop();
    await deliverAll();
    expect(one.cluster.others()).toEqual([]);
  });
});

describe("typing", () => {
  test("typing is shown with every renewal on any node, and ends once", async () => {
    const { nodes, deliverAll, advance } = testCluster();
    const [one, two, three] = await nodes(3);
    const bob = three.connect("bob", CHAT);
    one.start("alice");
    await deliverAll();
    for (let renewal = 0; renewal < 5; renewal++) {
      await advance(EXPIRES_MS - 1000);
      (renewal % 2 ? one : two).start("alice");
      await deliverAll();
    }
    expect(shown(bob)).toEqual(Array(6).fill(true));
    await advance(EXPIRES_MS - 100);
    expect(shown(bob)).toEqual([]);
    await advance(200);
    expect(shown(bob)).toEqual([false]);
    await advance(60_000);
    expect(shown(bob)).toEqual([]);
  });

  test("typing ends once when it is stopped on another node", async () => {
    const { nodes, deliverAll, advance } = testCluster();
    const [one, two, three] = await nodes(3);
    const bob = three.connect("bob", CHAT);
    one.start("alice");
    await deliverAll();
    two.stop("alice");
    await deliverAll();
    await advance(60_000);
    expect(shown(bob)).toEqual([true, false]);
    two.start("alice");
    expect(shown(bob)).toEqual([true]);
  });

  test("typing ends with the last socket on any node, and not before, whichever node holds it", async () => {
    const { nodes, deliverAll, advance } = testCluster();
    const [one, two, three] = await nodes(3);
    const bob = three.connect("bob", CHAT, OTHER_CHAT);
    const [phone, laptop] = [one.connect("alice", CHAT), two.connect("alice", CHAT)];
    await deliverAll();
    one.start("alice");
    three.start("alice", OTHER_CHAT);
    await deliverAll();
    close(phone);
    await deliverAll();
    expect(shown(bob)).toEqual([true, true]);
    close(laptop);
    await deliverAll();
    expect(shown(bob)).toEqual([false, false]);
    await advance(60_000);
    expect(shown(bob)).toEqual([]);
  });

  test("typing ends once when the last two sockets close at the same time", async () => {
    const { nodes, deliverAll, advance } = testCluster();
    const [one, two, three] = await nodes(3);
    const bob = three.connect("bob", CHAT);
    const [phone, laptop] = [one.connect("alice", CHAT), two.connect("alice", CHAT)];
    await deliverAll();
    two.start("alice");
    await deliverAll();
    close(phone);
    close(laptop);
    await deliverAll();
    expect(shown(bob)).toEqual([true, false]);
    await advance(60_000);
    expect(shown(bob)).toEqual([]);
  });

  test("typing that starts on two nodes at the same time ends once", async () => {
    const { nodes, deliverAll, advance } = testCluster();
    const [one, two, three] = await nodes(3);
    const bob = three.connect("bob", CHAT);
    two.start("alice");
    one.start("alice");
    await deliverAll();
    await advance(60_000);
    expect(shown(bob).filter((on) => !on)).toEqual([false]);
  });

  test("typing that expires on one node while another renews it continues", async () => {
    const { nodes, deliverAll, advance } = testCluster();
    const [one, two, three] = await nodes(3);
    const bob = three.connect("bob", CHAT);
    one.start("alice");
    await deliverAll();
    await advance(EXPIRES_MS - 100);
    two.start("alice");
    jest.advanceTimersByTime(100);
    await deliverAll();
    expect(shown(bob).at(-1)).toBe(true);
    await advance(EXPIRES_MS);
    expect(shown(bob)).toEqual([false]);
  });

  test("typing ends once and in time although the node that reported it is gone", async () => {
    const { nodes, deliverAll, advance } = testCluster();
    const [, two, three] = await nodes(3);
    const bob = three.connect("bob", CHAT);
    two.connect("alice", CHAT);
    two.start("alice");
    await deliverAll();
    expect(shown(bob)).toEqual([true]);
    two.die();
    await advance(EXPIRES_MS);
    expect(shown(bob)).toEqual([false]);
    await advance(NODE_TIMEOUT_MS + 4000);
    expect(shown(bob)).toEqual([]);
  });

  test("typing can be renewed on a node that starts later", async () => {
    const { node, nodes, deliverAll, advance } = testCluster();
    const [one, two] = await nodes(2);
    const bob = two.connect("bob", CHAT);
    one.start("alice");
    await deliverAll();
    const late = node();
    await late.up();
    await advance(EXPIRES_MS - 1000);
    late.start("alice");
    await deliverAll();
    expect(shown(bob)).toEqual([true, true]);
    await advance(EXPIRES_MS);
    expect(shown(bob)).toEqual([false]);
  });
});

describe("presence", () => {
  const presenceOf = (client: FakeClient) =>
    client.events().map((event) => {
      if (event.method !== "events.presence") throw new Error(`${event.method} was not expected`);
      return event.params.online;
    });

  test("a person is online while a socket is open on any node", async () => {
    const { node, nodes, deliverAll } = testCluster();
    const [one, two, three] = await nodes(3);
    const watcher = three.connect("bob");
    expect(await three.presence.watch("bob", ["alice"], watcher.id)).toMatchObject({
      items: [{ online: false }],
    });
    const [phone, laptop] = [one.connect("alice"), two.connect("alice")];
    await deliverAll();
    close(phone);
    await deliverAll();
    expect(presenceOf(watcher)).toEqual([true]);
    const late = node();
    await late.up();
    expect(await late.presence.watch("carol", ["alice"], undefined)).toMatchObject({
      items: [{ online: true }],
    });
    close(laptop);
    await deliverAll();
    expect(presenceOf(watcher)).toEqual([false]);
  });

  test("a node that dies takes its people offline, and not those who are elsewhere too", async () => {
    const { nodes, deliverAll, advance } = testCluster();
    const [one, two, three] = await nodes(3);
    const watcher = three.connect("bob");
    await three.presence.watch("bob", ["alice", "carol"], watcher.id);
    two.connect("alice");
    two.connect("carol");
    one.connect("carol");
    await deliverAll();
    expect(presenceOf(watcher)).toEqual([true, true]);
    await advance(2000);
    for (const each of [one, two, three]) each.noted();
    two.die();
    await advance(NODE_TIMEOUT_MS);
    expect(watcher.events()).toMatchObject([{ params: { username: "alice", online: false } }]);
    await advance(2000);
    // The node that died could not store it.
    expect(one.noted()).toEqual(["alice"]);
  });

  test("somebody is at the screen of a client on any node, until the client or its node is gone", async () => {
    const { nodes, deliverAll, advance } = testCluster();
    const [one, two, three] = await nodes(3);
    const [phone, laptop] = [two.connect("alice"), three.connect("alice")];
    await deliverAll();
    const isActive = (withinMs?: number) =>
      [one, two, three].map(({ presence }) => presence.isActive("alice", withinMs));
    expect(isActive(60_000)).toEqual([false, false, false]);
    two.presence.setActivity("alice", true, phone.id);
    three.presence.setActivity("alice", true, laptop.id);
    await deliverAll();
    expect(isActive()).toEqual([true, true, true]);
    two.presence.setActivity("alice", false, phone.id);
    two.presence.setActivity("alice", true, "closed");
    await deliverAll();
    expect(isActive()).toEqual([true, true, true]);
    close(laptop);
    await deliverAll();
    expect(isActive()).toEqual([false, false, false]);
    expect(isActive(5000)).toEqual([true, true, true]);
    await advance(5100);
    expect(isActive(5000)).toEqual([false, false, false]);
    two.presence.setActivity("alice", true, phone.id);
    await deliverAll();
    two.die();
    await advance(NODE_TIMEOUT_MS);
    expect(one.presence.isActive("alice")).toBe(false);
    expect(one.presence.isActive("alice", 10_000)).toBe(true);
  });
});

describe("sockets of one account", () => {
  test("sockets are counted over all nodes", async () => {
    const { node, nodes, deliverAll, advance } = testCluster();
    const [one, two, three] = await nodes(3);
    const phone = one.connect("alice");
    two.connect("alice");
    three.connect("bob");
    await deliverAll();
    const late = node();
    await late.up();
    for (const each of [one, two, three, late]) expect(each.hub.sockets("alice")).toBe(2);
    close(phone);
    await deliverAll();
    for (const each of [one, two, three, late]) expect(each.hub.sockets("alice")).toBe(1);
    two.die();
    await advance(NODE_TIMEOUT_MS + 4000);
    for (const each of [one, three, late]) expect(each.hub.sockets("alice")).toBe(0);
  });

  test("sockets of a person's agents are counted together over all nodes", async () => {
    const { nodes, deliverAll } = testCluster();
    const [one, two, three] = await nodes(3);
    const counts = () =>
      [one, two, three].map(({ hub }) => [
        hub.limitedSockets({ username: "alice:new", owner_id: 1 }),
        hub.limitedSockets({ username: "alice", owner_id: null }),
      ]);
    for (const username of ["alice", "alice:first", "alicia:first"]) one.connect(username);
    const second = two.connect("alice:second");
    two.connect("alice:first");
    await deliverAll();
    expect(counts()).toEqual(Array(3).fill([3, 1]));
    close(second);
    await deliverAll();
    expect(counts()).toEqual(Array(3).fill([2, 1]));
  });

  test("sockets are counted again after nodes were disconnected from each other", async () => {
    const { nodes, advance, deliverAll } = testCluster();
    const [one, two] = await nodes(2);
    const phone = one.connect("alice");
    two.connect("alice");
    two.connect("bob");
    await deliverAll();
    two.down();
    await advance(NODE_TIMEOUT_MS + 4000);
    expect(one.hub.sockets("alice")).toBe(1);
    expect(two.hub.sockets("alice")).toBe(1);
    close(phone);
    one.connect("bob");
    await deliverAll();
    await two.up();
    for (const each of [one, two]) {
      expect([each.hub.sockets("alice"), each.hub.sockets("bob")]).toEqual([1, 2]);
    }
  });

  test("sockets are counted again after a node was paused", async () => {
    const { nodes, advance, deliverAll } = testCluster();
    const [one, two] = await nodes(2);
    one.connect("alice");
    two.connect("alice");
    await deliverAll();
    two.down();
    await advance(NODE_TIMEOUT_MS + 4000);
    expect(one.hub.sockets("alice")).toBe(1);
    two.resume();
    await advance(4000);
    for (const each of [one, two]) expect(each.hub.sockets("alice")).toBe(2);
  });

  test("counts that changed during a short disconnect are corrected after it", async () => {
    const { nodes, deliverAll } = testCluster();
    const [one, two] = await nodes(2);
    const phone = one.connect("alice");
    await deliverAll();
    one.down();
    close(phone);
    one.connect("bob");
    await deliverAll();
    await one.up();
    expect(two.hub.sockets("alice")).toBe(0);
    expect(two.hub.sockets("bob")).toBe(1);
  });

  test("the newest sockets over the limit are closed when several open at the same time", async () => {
    const { nodes, deliverAll } = testCluster();
    const [one, two, three] = await nodes(3);
    const old = one.connect("alice");
    await deliverAll();
    const opened = [one, two, three, two, one].map((node) => {
      return node.connect("alice");
    });
    await deliverAll();
    for (const each of [one, two, three]) expect(each.hub.sockets("alice")).toBe(LIMIT);
    expect(old.closed).toEqual([]);
    expect(opened.map(({ closed }) => closed.map(({ code }) => code))).toEqual([
      [],
      [],
      [closeCodes.goingAway],
      [closeCodes.goingAway],
      [closeCodes.goingAway],
    ]);
  });

  test("sockets are not counted by a part of a state from before a disconnection", async () => {
    const { node, nodes, deliverOneTo, deliverAll } = testCluster();
    const [one] = await nodes(1);
    const all = Array.from({ length: 1234 }, (_, n) => one.connect(`user${n}`));
    await deliverAll();
    const late = node();
    late.introduce();
    deliverOneTo(late.id);
    late.down();
    await deliverAll();
    close(all[0] as FakeClient);
    await deliverAll();
    await late.up();
    expect(late.hub.sockets("user0")).toBe(0);
    expect(late.hub.sockets("user1233")).toBe(1);
  });

  test("sockets of more accounts than fit one message are known to a node that starts later", async () => {
    const { node, nodes, deliverAll } = testCluster();
    const [one] = await nodes(1);
    for (let count = 0; count < 1234; count++) one.connect(`user${count}`);
    await deliverAll();
    const late = node();
    await late.up();
    const known = Array.from({ length: 1234 }, (_, n) => late.hub.sockets(`user${n}`));
    expect(known.every((count) => count === 1)).toBe(true);
  });
});

/** Whether the call is not rate limited. */
function isAllowed(call: () => void): boolean {
  try {
    call();
    return true;
  } catch (error) {
    if (error instanceof Failure && error.code === "rate_limited") return false;
    throw error;
  }
}

describe("rate limits", () => {
  const rate = { perSecond: 10, burst: 20 };
  const nodeThrottle = ({ cluster }: { cluster: Cluster }) =>
    createThrottle(rate, { cluster, name: "messages" });
  const drain = ({ take }: { take(key: string): void }, key = "alice") => {
    let taken = 0;
    while (isAllowed(() => take(key))) taken++;
    return taken;
  };

  test("tokens taken on one node are missing on the others", async () => {
    const { nodes, advance } = testCluster();
    const [one, two] = (await nodes(2)).map(nodeThrottle) as [Throttle, Throttle];
    for (let count = 0; count < 15; count++) one.take("alice");
    await advance(200);
    expect(drain(two)).toBeLessThanOrEqual(8);
    expect(drain(two, "bob")).toBe(rate.burst);
  });

  test("tokens taken on several nodes at the same time are paid back", async () => {
    const { nodes, advance } = testCluster();
    const all = (await nodes(3)).map(nodeThrottle);
    let taken = all.reduce((sum, each) => sum + drain(each), 0);
    expect(taken).toBe(3 * rate.burst);
    const seconds = 10;
    for (let step = 0; step < seconds * 10; step++) {
      await advance(100);
      for (const each of all) taken += drain(each);
    }
    // More than a single node would allow: a burst for each other node, and what the others allow
    // until they receive each other's reports.
    const alone = rate.burst + rate.perSecond * seconds;
    expect(taken).toBeLessThanOrEqual(alone + 2 * rate.burst + 2 * rate.perSecond * seconds * 0.2);
  });

  test("a single node allows the full rate", async () => {
    const { nodes, advance } = testCluster();
    const [one] = (await nodes(1)).map(nodeThrottle) as [Throttle];
    expect(drain(one)).toBe(rate.burst);
    await advance(1000);
    expect(drain(one)).toBe(rate.perSecond);
  });
});

describe("failed sign-ins", () => {
  const FREE = 3;
  const nodeFailureThrottle = ({ cluster }: { cluster: Cluster }) =>
    createFailureThrottle(FREE, 20, { cluster, name: "sign_in" });
  const attempt = (failures: FailureThrottle, key: string) => {
    failures.check(key);
    failures.count(key);
  };

  test("failed sign-ins are counted over all nodes immediately", async () => {
    const { nodes, deliverAll, advance } = testCluster();
    const [one, two] = (await nodes(2)).map(nodeFailureThrottle) as [
      FailureThrottle,
      FailureThrottle,
    ];
    for (let count = 0; count < FREE; count++) {
      expect(isAllowed(() => attempt(count % 2 ? one : two, "alice"))).toBe(true);
      await deliverAll();
    }
    for (const each of [one, two]) expect(isAllowed(() => attempt(each, "alice"))).toBe(false);
    await advance(1000);
    expect(isAllowed(() => attempt(two, "alice"))).toBe(true);
    await deliverAll();
    await advance(1000);
    expect(isAllowed(() => attempt(one, "alice"))).toBe(false);
  });

  test("failed sign-ins are forgiven and forgotten on all nodes", async () => {
    const { nodes, deliverAll } = testCluster();
    const [one, two] = (await nodes(2)).map(nodeFailureThrottle) as [
      FailureThrottle,
      FailureThrottle,
    ];
    for (let count = 0; count < FREE - 1; count++) attempt(one, "alice");
    for (let success = 0; success < 10; success++) {
      attempt(one, "alice");
      one.forgive("alice");
    }
    await deliverAll();
    expect(isAllowed(() => attempt(two, "alice"))).toBe(true);
    expect(isAllowed(() => attempt(two, "alice"))).toBe(false);
    await deliverAll();
    one.forget("alice");
    await deliverAll();
    expect(isAllowed(() => attempt(two, "alice"))).toBe(true);
  });

  test("failed sign-ins are known to a node that starts later", async () => {
    const { node, nodes } = testCluster();
    const [one] = (await nodes(1)).map(nodeFailureThrottle) as [FailureThrottle];
    for (let count = 0; count < FREE; count++) attempt(one, "alice");
    const late = node();
    const there = nodeFailureThrottle(late);
    await late.up();
    expect(isAllowed(() => attempt(there, "alice"))).toBe(false);
    expect(isAllowed(() => attempt(there, "bob"))).toBe(true);
  });
});
