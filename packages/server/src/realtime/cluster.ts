import { z } from "zod";
import type { Logger } from "../observe/log.ts";
import type { Channel } from "./bus.ts";

const ALIVE_MS = 2000;
/** A node that was not heard of for so long is forgotten, with all that it said. */
const FORGET_MS = 10_000;
/** A timer that comes so late means that this process stood still, not that the others did. */
const PAUSE_MS = 3000;
/** Items told at once: a message must fit what NATS takes. */
const CHUNK = 500;

/** Something that nodes tell each other of, such as who is typing. */
export interface Part<Item> {
  readonly name: string;
  readonly schema: z.ZodType<Item>;
  receive(item: Item, node: string): void;
  /** All that another node has to know of this one. */
  state?(): Item[];
  /** All that a node has to say of itself, in place of whatever it said before. */
  replace?(items: readonly Item[], node: string): void;
  /** A node has started, or can be reached again. */
  meet?(node: string): void;
  /** A node is gone. One that took its leave has said all it had to. */
  forget?(node: string, tookLeave: boolean): void;
}

/**
 * What is neither stored nor an event, and yet holds over all nodes. Nodes are equal: each tells all
 * others what it does, and decides by what it was told. While they cannot reach each other, each
 * decides by itself.
 */
export interface Cluster {
  /** This node's id. */
  readonly node: string;
  /** Those that were heard of lately. */
  others(): string[];
  /** Returns what tells the others something. */
  share<Item>(part: Part<Item>): (item: Item) => void;
  /** Says goodbye. */
  stop(): void;
}

/** One node, with nobody to tell anything. */
export const alone: Cluster = {
  node: "",
  others: () => [],
  share: () => () => {},
  stop: () => {},
};

const Said = z.discriminatedUnion("say", [
  z.object({ say: z.literal("alive"), node: z.string() }),
  /** Asks for everything. */
  z.object({ say: z.literal("hello"), node: z.string() }),
  z.object({ say: z.literal("bye"), node: z.string() }),
  z.object({ say: z.literal("tell"), node: z.string(), part: z.string(), item: z.unknown() }),
  z.object({
    say: z.literal("state"),
    node: z.string(),
    part: z.string(),
    items: z.array(z.unknown()),
    more: z.boolean(),
  }),
]);
type Said = z.infer<typeof Said>;
type State = Extract<Said, { say: "state" }>;

export interface ClusterOptions {
  log: Logger;
  aliveMs?: number;
  forgetMs?: number;
}

export function cluster(
  channel: Channel,
  { log, aliveMs = ALIVE_MS, forgetMs = FORGET_MS }: ClusterOptions,
): Cluster {
  const { node } = channel;
  const parts = new Map<string, Part<unknown>>();
  const heardAt = new Map<string, number>();
  /** States that have come in part. */
  const incoming = new Map<string, unknown[]>();
  let due = performance.now() + aliveMs;

  const greet = () => {
    channel.broadcast({ say: "hello", node });
    tellState((said) => channel.broadcast(said));
  };
  const timer = setInterval(() => {
    channel.broadcast({ say: "alive", node });
    const now = performance.now();
    const paused = now - due > PAUSE_MS;
    due = now + aliveMs;
    for (const [other, at] of heardAt) {
      if (paused) heardAt.set(other, now);
      else if (now - at > forgetMs) forget(other, false);
    }
  }, aliveMs);
  timer.unref();

  channel.onUp(greet);
  channel.onMessage((body) => {
    const said = Said.parse(body);
    if (said.node !== node) hear(said);
  });

  function hear(said: Said): void {
    if (said.say === "bye") {
      forget(said.node, true);
      return;
    }
    const answer = (message: Said) => channel.send(said.node, message);
    const isNew = !heardAt.has(said.node);
    heardAt.set(said.node, performance.now());
    if (isNew || said.say === "hello") {
      for (const part of parts.values()) part.meet?.(said.node);
    }
    if (said.say === "hello") tellState(answer);
    else if (isNew) {
      // One that was thought to be gone: each side has forgotten what the other said.
      answer({ say: "hello", node });
      tellState(answer);
    }
    if (said.say === "tell") receive(said);
    if (said.say === "state") replace(said);
  }

  function receive(said: Extract<Said, { say: "tell" }>): void {
    const part = parts.get(said.part);
    part?.receive(part.schema.parse(said.item), said.node);
  }

  function replace({ node: from, part: name, items, more }: State): void {
    const part = parts.get(name);
    const key = `${from} ${name}`;
    const all = [...(incoming.get(key) ?? []), ...items];
    if (more) {
      incoming.set(key, all);
      return;
    }
    incoming.delete(key);
    part?.replace?.(
      all.map((item) => part.schema.parse(item)),
      from,
    );
  }

  function tellState(say: (said: State) => void): void {
    for (const [name, part] of parts) {
      if (!part.state) continue;
      const items = part.state();
      let from = 0;
      do {
        const more = from + CHUNK < items.length;
        say({ say: "state", node, part: name, items: items.slice(from, from + CHUNK), more });
        from += CHUNK;
      } while (from < items.length);
    }
  }

  function forget(other: string, tookLeave: boolean): void {
    if (!heardAt.delete(other)) return;
    log.info({ node: other }, "another node is gone");
    for (const part of parts.values()) {
      incoming.delete(`${other} ${part.name}`);
      part.forget?.(other, tookLeave);
    }
  }

  return {
    node,
    others: () => [...heardAt.keys()],
    share(part) {
      parts.set(part.name, part as Part<unknown>);
      return (item) => channel.broadcast({ say: "tell", node, part: part.name, item });
    },
    stop() {
      clearInterval(timer);
      channel.broadcast({ say: "bye", node });
    },
  };
}
