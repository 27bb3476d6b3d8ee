import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { closeCodes } from "@parley/protocol";
import pino from "pino";
import type { Bus, Channel, Delivered } from "../src/realtime/bus.ts";
import { memoryBus } from "../src/realtime/bus-memory.ts";
import { type Cluster, cluster as newCluster } from "../src/realtime/cluster.ts";
import { hub as newHub } from "../src/realtime/hub.ts";
import { sockets } from "../src/realtime/sockets.ts";
import { typing as newTyping } from "../src/realtime/typing.ts";
import { Failure } from "../src/rules/failure.ts";
import { type FailureThrottle, failureThrottle } from "../src/security/failure-throttle.ts";
import { type Throttle, throttle } from "../src/security/throttle.ts";
import { broker, FakeClient, human } from "./support/broker.ts";

const ROOM = "0190f000-0000-7000-8000-000000000001";
const OTHER_ROOM = "0190f000-0000-7000-8000-000000000002";
const EXPIRES_MS = 6000;
const FORGET_MS = 10_000;
const LIMIT = 3;
const log = pino({ level: "silent" });

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/**
 * What nodes say to each other stays on the way until `flow` brings it, so that things can happen
 * at the same moment. Events are delivered at once.
 */
function world() {
  const channels = new Map<string, { hear(body: unknown): void; up(): void }>();
  const buses: ((packet: Delivered) => void)[] = [];
  const away = new Set<string>();
  const dead = new Set<string>();
  let onTheWay: (() => void)[] = [];
  let made = 0;

  async function flow(): Promise<void> {
    // Sockets that open or close in one turn are told of together, after it.
    await turn();
    while (onTheWay.length > 0) {
      const all = onTheWay;
      onTheWay = [];
      for (const arrive of all) arrive();
      await turn();
    }
  }
  const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));

  /** Lets time pass, and everything that is said meanwhile arrive. */
  async function pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      jest.advanceTimersByTime(Math.min(100, left));
      await flow();
    }
  }

  function channel(node: string): Channel {
    const post = (to: string, body: unknown) => {
      const text = JSON.stringify(body);
      if (away.has(node)) return;
      onTheWay.push(() => {
        if (!away.has(to)) channels.get(to)?.hear(JSON.parse(text));
      });
    };
    const own = { hear: (_: unknown) => {}, up: () => {} };
    channels.set(node, own);
    return {
      node,
      broadcast: (body) => {
        for (const other of channels.keys()) if (other !== node) post(other, body);
      },
      send: post,
      onMessage: (listener) => {
        own.hear = listener;
      },
      onUp: (listener) => {
        own.up = listener;
      },
    };
  }

  function bus(node: string): Bus {
    return {
      ...memoryBus(),
      onChange: (listener) => void buses.push(listener),
      publish: (change) => {
        if (!dead.has(node)) for (const deliver of buses) deliver(change);
      },
    };
  }

  function node(id = `node-${++made}`) {
    const cluster = newCluster(channel(id), { log });
    const { clients, publish } = broker();
    const own = bus(id);
    const hub = newHub(own, publish, sockets(cluster, LIMIT));
    own.onChange(hub.receive);
    const typing = newTyping(hub, { signal: own.publish }, cluster, EXPIRES_MS);
    let account = 0;
    function connect(username: string, ...conversations: string[]): FakeClient {
      const client = new FakeClient(Bun.randomUUIDv7(), `session-${username}`);
      clients.add(client);
      const record = { ...human(username), id: ++account, owner_id: null, provider: null };
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
      connect,
      start: (username: string, room = ROOM) => typing.start(room, human(username)),
      stop: (username: string, room = ROOM) => typing.stop(room, human(username)),
      /** Its connection is up, which happens soon after the start. */
      up: () => {
        away.delete(id);
        channels.get(id)?.up();
        return flow();
      },
      /** Its connection is lost. */
      down: () => void away.add(id),
      /** It is heard again, and never knew that it was not. */
      resume: () => void away.delete(id),
      /** It dies without a word. */
      die: () => {
        away.add(id);
        dead.add(id);
        cluster.stop();
      },
    };
  }

  /** Nodes that know each other. */
  async function nodes(count: number) {
    const all = Array.from({ length: count }, () => node());
    for (const each of all) await each.up();
    return all as [Node, Node, Node];
  }
  type Node = ReturnType<typeof node>;
  return { node, nodes, flow, pass };
}

const shown = (client: FakeClient) =>
  client.events().map((event) => {
    if (event.method !== "events.typing") throw new Error(`${event.method} was not expected`);
    return event.params.is_typing;
  });

const close = (client: FakeClient) => client.close(1000, "");

describe("the nodes", () => {
  test("know each other, from whenever they have come", async () => {
    const { node, nodes, pass } = world();
    const [one, two] = await nodes(2);
    const three = node();
    await three.up();
    expect(one.cluster.others().toSorted()).toEqual([two.id, three.id]);
    expect(three.cluster.others().toSorted()).toEqual([one.id, two.id]);
    await pass(60_000);
    expect(one.cluster.others().toSorted()).toEqual([two.id, three.id]);
  });

  test("forget one that is silent, in time, and one that says goodbye, at once", async () => {
    const { nodes, pass, flow } = world();
    const [one, two, three] = await nodes(3);
    two.die();
    await pass(FORGET_MS - 2000);
    expect(one.cluster.others()).toContain(two.id);
    await pass(4000);
    expect(one.cluster.others()).toEqual([three.id]);
    three.cluster.stop();
    await flow();
    expect(one.cluster.others()).toEqual([]);
  });
});

describe("typing", () => {
  test("is shown with every renewal on any node, and ends once", async () => {
    const { nodes, flow, pass } = world();
    const [one, two, three] = await nodes(3);
    const bob = three.connect("bob", ROOM);
    one.start("alice");
    await flow();
    for (let renewal = 0; renewal < 5; renewal++) {
      await pass(EXPIRES_MS - 1000);
      (renewal % 2 ? one : two).start("alice");
      await flow();
    }
    expect(shown(bob)).toEqual(Array(6).fill(true));
    await pass(EXPIRES_MS - 100);
    expect(shown(bob)).toEqual([]);
    await pass(200);
    expect(shown(bob)).toEqual([false]);
    await pass(60_000);
    expect(shown(bob)).toEqual([]);
  });

  test("ends once when it is stopped on another node", async () => {
    const { nodes, flow, pass } = world();
    const [one, two, three] = await nodes(3);
    const bob = three.connect("bob", ROOM);
    one.start("alice");
    await flow();
    two.stop("alice");
    await flow();
    await pass(60_000);
    expect(shown(bob)).toEqual([true, false]);
    two.start("alice");
    expect(shown(bob)).toEqual([true]);
  });

  test("ends with the last socket anywhere, and not before, whoever was told of it", async () => {
    const { nodes, flow, pass } = world();
    const [one, two, three] = await nodes(3);
    const bob = three.connect("bob", ROOM, OTHER_ROOM);
    const [phone, laptop] = [one.connect("alice", ROOM), two.connect("alice", ROOM)];
    await flow();
    one.start("alice");
    three.start("alice", OTHER_ROOM);
    await flow();
    close(phone);
    await flow();
    expect(shown(bob)).toEqual([true, true]);
    close(laptop);
    await flow();
    expect(shown(bob)).toEqual([false, false]);
    await pass(60_000);
    expect(shown(bob)).toEqual([]);
  });

  test("ends once when the last two sockets close at the same moment", async () => {
    const { nodes, flow, pass } = world();
    const [one, two, three] = await nodes(3);
    const bob = three.connect("bob", ROOM);
    const [phone, laptop] = [one.connect("alice", ROOM), two.connect("alice", ROOM)];
    await flow();
    two.start("alice");
    await flow();
    close(phone);
    close(laptop);
    await flow();
    expect(shown(bob)).toEqual([true, false]);
    await pass(60_000);
    expect(shown(bob)).toEqual([]);
  });

  test("that begins on two nodes at the same moment ends once", async () => {
    const { nodes, flow, pass } = world();
    const [one, two, three] = await nodes(3);
    const bob = three.connect("bob", ROOM);
    two.start("alice");
    one.start("alice");
    await flow();
    await pass(60_000);
    expect(shown(bob).filter((on) => !on)).toEqual([false]);
  });

  test("that is renewed on another node while it ends goes on", async () => {
    const { nodes, flow, pass } = world();
    const [one, two, three] = await nodes(3);
    const bob = three.connect("bob", ROOM);
    one.start("alice");
    await flow();
    await pass(EXPIRES_MS - 100);
    two.start("alice");
    jest.advanceTimersByTime(100);
    await flow();
    expect(shown(bob).at(-1)).toBe(true);
    await pass(EXPIRES_MS);
    expect(shown(bob)).toEqual([false]);
  });

  test("is ended by one of the others when the node that had it is gone", async () => {
    const { nodes, flow, pass } = world();
    const [one, two, three] = await nodes(3);
    const bob = three.connect("bob", ROOM);
    two.start("alice");
    await flow();
    two.die();
    await pass(FORGET_MS);
    expect(shown(bob)).toEqual([true]);
    await pass(4000);
    expect(one.cluster.others()).toEqual([three.id]);
    expect(shown(bob)).toEqual([false]);
  });

  test("is known to a node that comes later", async () => {
    const { node, nodes, flow, pass } = world();
    const [one, two] = await nodes(2);
    const bob = two.connect("bob", ROOM);
    one.start("alice");
    await flow();
    const late = node();
    await late.up();
    await pass(EXPIRES_MS - 1000);
    late.start("alice");
    await flow();
    expect(shown(bob)).toEqual([true, true]);
    await pass(EXPIRES_MS);
    expect(shown(bob)).toEqual([false]);
  });
});

describe("sockets of one account", () => {
  test("are counted over all nodes", async () => {
    const { node, nodes, flow, pass } = world();
    const [one, two, three] = await nodes(3);
    const phone = one.connect("alice");
    two.connect("alice");
    three.connect("bob");
    await flow();
    const late = node();
    await late.up();
    for (const each of [one, two, three, late]) expect(each.hub.sockets("alice")).toBe(2);
    close(phone);
    await flow();
    for (const each of [one, two, three, late]) expect(each.hub.sockets("alice")).toBe(1);
    two.die();
    await pass(FORGET_MS + 4000);
    for (const each of [one, three, late]) expect(each.hub.sockets("alice")).toBe(0);
  });

  test("are counted again after nodes have lost each other", async () => {
    const { nodes, pass, flow } = world();
    const [one, two] = await nodes(2);
    const phone = one.connect("alice");
    two.connect("alice");
    two.connect("bob");
    await flow();
    two.down();
    await pass(FORGET_MS + 4000);
    expect(one.hub.sockets("alice")).toBe(1);
    expect(two.hub.sockets("alice")).toBe(1);
    close(phone);
    one.connect("bob");
    await flow();
    await two.up();
    for (const each of [one, two]) {
      expect([each.hub.sockets("alice"), each.hub.sockets("bob")]).toEqual([1, 2]);
    }
  });

  test("are counted again after a node has stood still without knowing it", async () => {
    const { nodes, pass, flow } = world();
    const [one, two] = await nodes(2);
    one.connect("alice");
    two.connect("alice");
    await flow();
    two.down();
    await pass(FORGET_MS + 4000);
    expect(one.hub.sockets("alice")).toBe(1);
    two.resume();
    await pass(4000);
    for (const each of [one, two]) expect(each.hub.sockets("alice")).toBe(2);
  });

  test("what was missed in a short silence is made up for", async () => {
    const { nodes, flow } = world();
    const [one, two] = await nodes(2);
    const phone = one.connect("alice");
    await flow();
    one.down();
    close(phone);
    one.connect("bob");
    await flow();
    await one.up();
    expect(two.hub.sockets("alice")).toBe(0);
    expect(two.hub.sockets("bob")).toBe(1);
  });

  test("that are too many because they came at the same moment: exactly the newest are closed", async () => {
    const { nodes, flow } = world();
    const [one, two, three] = await nodes(3);
    const old = one.connect("alice");
    await flow();
    const opened = [one, two, three, two, one].map((node) => {
      return node.connect("alice");
    });
    await flow();
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

  test("of very many accounts are told of to a node that comes later", async () => {
    const { node, nodes, flow } = world();
    const [one] = await nodes(1);
    for (let count = 0; count < 1234; count++) one.connect(`user${count}`);
    await flow();
    const late = node();
    await late.up();
    const known = Array.from({ length: 1234 }, (_, n) => late.hub.sockets(`user${n}`));
    expect(known.every((count) => count === 1)).toBe(true);
  });
});

/** Whether a call is let through. */
function isFree(call: () => void): boolean {
  try {
    call();
    return true;
  } catch (error) {
    if (error instanceof Failure && error.code === "rate_limited") return false;
    throw error;
  }
}

describe("rates", () => {
  const rate = { perSecond: 10, burst: 20 };
  const taker = ({ cluster }: { cluster: Cluster }) =>
    throttle(rate, { cluster, name: "messages" });
  const drain = ({ take }: { take(key: string): void }, key = "alice") => {
    let taken = 0;
    while (isFree(() => take(key))) taken++;
    return taken;
  };

  test("hold over all nodes: what was taken on one is not there on another", async () => {
    const { nodes, pass } = world();
    const [one, two] = (await nodes(2)).map(taker) as [Throttle, Throttle];
    for (let count = 0; count < 15; count++) one.take("alice");
    await pass(200);
    expect(drain(two)).toBeLessThanOrEqual(8);
    expect(drain(two, "bob")).toBe(rate.burst);
  });

  test("what was taken too much at the same moment is paid back", async () => {
    const { nodes, pass } = world();
    const all = (await nodes(3)).map(taker);
    let taken = all.reduce((sum, each) => sum + drain(each), 0);
    expect(taken).toBe(3 * rate.burst);
    const seconds = 10;
    for (let step = 0; step < seconds * 10; step++) {
      await pass(100);
      for (const each of all) taken += drain(each);
    }
    // Beyond what one node alone would have let through: a burst for each other node, and what
    // they let through in the time they hear of each other.
    const alone = rate.burst + rate.perSecond * seconds;
    expect(taken).toBeLessThanOrEqual(alone + 2 * rate.burst + 2 * rate.perSecond * seconds * 0.2);
  });

  test("of a node that is alone are its own", async () => {
    const { nodes, pass } = world();
    const [one] = (await nodes(1)).map(taker) as [Throttle];
    expect(drain(one)).toBe(rate.burst);
    await pass(1000);
    expect(drain(one)).toBe(rate.perSecond);
  });
});

describe("failed sign-ins", () => {
  const FREE = 3;
  const counting = ({ cluster }: { cluster: Cluster }) =>
    failureThrottle(FREE, 20, { cluster, name: "sign_in" });
  const attempt = (failures: FailureThrottle, key: string) => {
    failures.check(key);
    failures.count(key);
  };

  test("are counted over all nodes, at once", async () => {
    const { nodes, flow, pass } = world();
    const [one, two] = (await nodes(2)).map(counting) as [FailureThrottle, FailureThrottle];
    for (let count = 0; count < FREE; count++) {
      expect(isFree(() => attempt(count % 2 ? one : two, "alice"))).toBe(true);
      await flow();
    }
    for (const each of [one, two]) expect(isFree(() => attempt(each, "alice"))).toBe(false);
    await pass(1000);
    expect(isFree(() => attempt(two, "alice"))).toBe(true);
    await flow();
    await pass(1000);
    expect(isFree(() => attempt(one, "alice"))).toBe(false);
  });

  test("are forgiven and forgotten over all nodes", async () => {
    const { nodes, flow } = world();
    const [one, two] = (await nodes(2)).map(counting) as [FailureThrottle, FailureThrottle];
    for (let count = 0; count < FREE - 1; count++) attempt(one, "alice");
    for (let success = 0; success < 10; success++) {
      attempt(one, "alice");
      one.forgive("alice");
    }
    await flow();
    expect(isFree(() => attempt(two, "alice"))).toBe(true);
    expect(isFree(() => attempt(two, "alice"))).toBe(false);
    await flow();
    one.forget("alice");
    await flow();
    expect(isFree(() => attempt(two, "alice"))).toBe(true);
  });

  test("are known to a node that comes later", async () => {
    const { node, nodes } = world();
    const [one] = (await nodes(1)).map(counting) as [FailureThrottle];
    for (let count = 0; count < FREE; count++) attempt(one, "alice");
    const late = node();
    const there = counting(late);
    await late.up();
    expect(isFree(() => attempt(there, "alice"))).toBe(false);
    expect(isFree(() => attempt(there, "bob"))).toBe(true);
  });
});
