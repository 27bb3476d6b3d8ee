import { z } from "zod";
import type { Logger } from "../observe/log.ts";
import type { Channel } from "./bus.ts";

const HEARTBEAT_MS = 1000;
/**
 * A node that sends nothing for this long is considered gone: with the time up to the next look, within
 * five seconds. Nodes of earlier versions send a heartbeat every two seconds.
 */
const NODE_TIMEOUT_MS = 3500;
/**
 * A heartbeat timer that fires this late means that this process was paused, not that others died. With
 * the age that a heartbeat may have, it is less than the timeout.
 */
const PAUSE_MS = 1500;
/** Items per `state` message, so that it stays below the maximum payload of NATS. */
const STATE_PAGE_ITEMS = 500;

/** A kind of information that nodes share, such as how many sockets accounts have. */
export interface Shared<Item> {
  /** Identifies it in messages between nodes. */
  readonly name: string;
  readonly schema: z.ZodType<Item>;
  receive(item: Item, node: string): void;
  /** Everything that other nodes need to know from this one. */
  state?(): Item[];
  /** Replaces everything received from a node before by its state. */
  replace?(items: readonly Item[], node: string): void;
  /** A node has started or can be reached again. */
  nodeUp?(node: string): void;
  /** A node has stopped or cannot be reached any more. */
  nodeGone?(node: string): void;
}

/**
 * Information that is neither stored nor an event, shared by all nodes. Nodes are equal: each sends
 * its own part to all others and decides by what it received. While nodes cannot reach each other,
 * each decides by itself.
 */
export interface Cluster {
  /** This node's id. */
  readonly node: string;
  /** The ids of the other nodes that can be reached. */
  others(): string[];
  /** Returns a function that sends an item to all other nodes. */
  share<Item>(shared: Shared<Item>): (item: Item) => void;
  /** Asks the other nodes for their state. Everything is shared by then: what they sent before is lost. */
  start(): void;
  /** Tells the other nodes that this one stops. */
  stop(): void;
}

/** A single node, without others. */
export const alone: Cluster = {
  node: "",
  others: () => [],
  share: () => () => {},
  start: () => {},
  stop: () => {},
};

/** Nodes of different versions run at the same time, so these field names and values must not change. */
const ClusterMessage = z.discriminatedUnion("say", [
  /** A heartbeat. */
  z.object({ say: z.literal("alive"), node: z.string() }),
  /** The node has come up, and asks for the state of the receiver. */
  z.object({ say: z.literal("hello"), node: z.string() }),
  z.object({ say: z.literal("bye"), node: z.string() }),
  z.object({ say: z.literal("tell"), node: z.string(), part: z.string(), item: z.unknown() }),
  z.object({
    say: z.literal("state"),
    node: z.string(),
    part: z.string(),
    items: z.array(z.unknown()),
    /** Number of items on the pages before. Nodes of earlier versions do not send it. */
    start: z.int().nonnegative().optional(),
    more: z.boolean(),
  }),
]);
type ClusterMessage = z.infer<typeof ClusterMessage>;
type StateMessage = Extract<ClusterMessage, { say: "state" }>;

export interface ClusterOptions {
  log: Logger;
  heartbeatMs?: number;
  nodeTimeoutMs?: number;
}

export function createCluster(channel: Channel, options: ClusterOptions): Cluster {
  const { log, heartbeatMs = HEARTBEAT_MS, nodeTimeoutMs = NODE_TIMEOUT_MS } = options;
  const { node } = channel;
  const parts = new Map<string, Shared<unknown>>();
  /** When each other node was last heard from. */
  const heardAt = new Map<string, number>();
  /** The pages received so far of each state that is incomplete. */
  const incompleteStates = new Map<string, unknown[]>();
  const broadcast = (message: ClusterMessage) => channel.broadcast(message);
  let heartbeatDueAt = performance.now() + heartbeatMs;
  const timer = setInterval(heartbeat, heartbeatMs);
  timer.unref();
  channel.onMessage((body) => {
    const message = ClusterMessage.parse(body);
    if (message.node !== node) receive(message);
  });

  function heartbeat(): void {
    broadcast({ say: "alive", node });
    const now = performance.now();
    const wasPaused = now - heartbeatDueAt > PAUSE_MS;
    heartbeatDueAt = now + heartbeatMs;
    for (const [other, at] of heardAt) {
      if (wasPaused) heardAt.set(other, now);
      else if (now - at > nodeTimeoutMs) remove(other);
    }
  }

  function receive(message: ClusterMessage): void {
    const { node: from } = message;
    if (message.say === "bye") {
      remove(from);
      return;
    }
    const reply = (answer: ClusterMessage) => channel.send(from, answer);
    const isNew = !heardAt.has(from);
    heardAt.set(from, performance.now());
    if (isNew || message.say === "hello") {
      for (const shared of parts.values()) shared.nodeUp?.(from);
    }
    if (message.say === "hello") sendState(reply);
    // A node that was considered gone: both sides have dropped what the other sent.
    else if (isNew) introduce(reply);
    if (message.say === "tell") {
      const shared = parts.get(message.part);
      shared?.receive(shared.schema.parse(message.item), from);
    }
    if (message.say === "state") receiveState(message);
  }

  function receiveState({ node: from, part, items, start, more }: StateMessage): void {
    const shared = parts.get(part);
    const key = stateKey(from, part);
    const before = start === 0 ? [] : (incompleteStates.get(key) ?? []);
    // A page before it was lost. The node sends its whole state again once it can be reached.
    if (start !== undefined && start !== before.length) return;
    const received = [...before, ...items];
    if (more) {
      incompleteStates.set(key, received);
      return;
    }
    incompleteStates.delete(key);
    const parsed = shared ? received.map((item) => shared.schema.parse(item)) : [];
    shared?.replace?.(parsed, from);
  }

  /** Sends this node's state, and asks for that of the receivers. */
  function introduce(send: (message: ClusterMessage) => void): void {
    send({ say: "hello", node });
    sendState(send);
  }

  function sendState(send: (message: StateMessage) => void): void {
    for (const [part, shared] of parts) {
      if (!shared.state) continue;
      const all = shared.state();
      let start = 0;
      do {
        const to = start + STATE_PAGE_ITEMS;
        const items = all.slice(start, to);
        send({ say: "state", node, part, items, start, more: to < all.length });
        start = to;
      } while (start < all.length);
    }
  }

  function remove(other: string): void {
    if (!heardAt.delete(other)) return;
    log.info({ node: other }, "node gone");
    for (const shared of parts.values()) {
      incompleteStates.delete(stateKey(other, shared.name));
      shared.nodeGone?.(other);
    }
  }

  return {
    node,
    others: () => [...heardAt.keys()],
    share: <Item>(shared: Shared<Item>) => {
      const { name: part } = shared;
      parts.set(part, shared as Shared<unknown>);
      return (item: Item) => broadcast({ say: "tell", node, part, item });
    },
    start: () => channel.onUp(() => introduce(broadcast)),
    stop: () => {
      clearInterval(timer);
      broadcast({ say: "bye", node });
    },
  };
}

const stateKey = (node: string, part: string) => `${node} ${part}`;
