import type { Bus, Channel, Delivered } from "./bus.ts";
import type { Change, EventChange, InternalChange, Membership } from "./change.ts";
import { createInterests } from "./interests.ts";
import { createNatsLink, type NatsOptions, subjects } from "./nats-link.ts";
import {
  decodeNodeMessage,
  encodeEvent,
  encodeForEach,
  type NodeMessage,
} from "./nats-payloads.ts";
import { SeenChanges } from "./seen-changes.ts";
import { Sequencer, type SequencerOptions } from "./sequencer.ts";
import { createStreams } from "./streams.ts";

export interface NatsBusOptions
  extends NatsOptions,
    Omit<SequencerOptions, "deliver" | "readLog" | "lost" | "missedLeaving"> {
  /** This node's id. */
  node: string;
  /** The first token of every subject. Installations that share a NATS have different ones. */
  prefix?: string;
  /** Reads the stored text of a message; null when there is no such message. */
  readText(message: string): Promise<string | null>;
}

export interface NatsBus extends Bus {
  readonly channel: Channel;
}

/**
 * Several nodes: changes travel over NATS core, which stores nothing. What is lost on the way is read
 * from the change log. A node delivers its own changes directly, so it works while NATS is down.
 */
export function createNatsBus(options: NatsBusOptions): NatsBus {
  const { node, prefix = "parley", readText, log } = options;
  const link = createNatsLink(options, `parley ${node}`, log);
  const names = subjects(prefix);
  const seen = new SeenChanges();
  let listener: (change: Delivered) => void = () => {};
  let received: (body: unknown) => void = () => {};
  let readLog: () => Promise<void> = async () => {};

  const order = new Sequencer({
    ...options,
    deliver: deliverEvent,
    readLog: () => readLog(),
    lost: (conversation) => {
      answers.forget(conversation);
      deliver({ kind: "events_lost", conversation });
    },
    missedLeaving: (leaves) => deliver({ kind: "leaving_missed", leaves }),
  });
  const answers = createStreams({
    deliver,
    read: (message) =>
      readText(message).catch((error) => {
        log.warn({ err: error, message }, "missing deltas read failed");
        return null;
      }),
  });
  const interests = createInterests({
    subjects: names,
    subscribe,
    settled: () => link.settled(),
    order,
    closed: (conversation) => answers.forget(conversation),
    joined: catchUp,
  });
  const ends = [names.nodes, names.node(node)].map((subject) =>
    subscribe(subject, (payload) => receiveMessage(decodeNodeMessage(payload))),
  );
  // What others published while this node was disconnected is in the log.
  link.onUp(catchUp);

  function catchUp(): void {
    readLog().catch((error) => log.error({ err: error }, "change log read failed"));
  }

  function send(subject: string, message: NodeMessage): void {
    link.publish(subject, JSON.stringify(message));
  }

  /** Payloads come from the network: one that cannot be decoded is logged and dropped. */
  function subscribe(subject: string, receive: (payload: Uint8Array) => void): () => void {
    return link.subscribe(subject, (payload) => {
      try {
        receive(payload);
      } catch (error) {
        log.warn({ err: error, subject }, "NATS message invalid");
      }
    });
  }

  function sendEvent(change: EventChange): void {
    const { to } = change;
    if ("conversation" in to) {
      link.publish(names.conversation(to.conversation), encodeEvent(change));
      return;
    }
    for (const [username, text] of encodeForEach(to.users, change)) {
      link.publish(names.user(username), text);
    }
  }

  function sendToRunners(turns: Extract<Change, { kind: "turns_ended" }>["turns"]): void {
    for (const [runner, theirs] of Map.groupBy(turns, (turn) => turn.node)) {
      if (runner === null || runner === node) continue;
      send(names.node(runner), { kind: "turns_ended", turns: theirs });
    }
  }

  function receiveMessage(message: NodeMessage): void {
    if (message.kind === "cluster") received(message.body);
    else if (!wasDelivered(message)) deliverInternal(message);
  }

  /** The joining accounts with clients here that do not receive the conversation's events yet. */
  function newcomers(joins: Membership | undefined): string[] {
    return joins?.users.filter((user) => interests.lacks(user, joins.conversation)) ?? [];
  }

  /** The accounts with clients here to which a durable change was not delivered. */
  function unserved(users: readonly string[], id: string | undefined): string[] {
    if (id === undefined) return [];
    return users.filter((user) => interests.hasPerson(user) && !seen.has(seenBy(user, id)));
  }

  function wasDelivered(change: InternalChange): boolean {
    return change.kind === "account_suspended" && seen.has(change.id ?? "");
  }

  function deliverInternal(change: InternalChange): void {
    if (change.kind === "account_suspended" && change.id) seen.add(change.id);
    deliver(change);
  }

  function deliverEvent(change: EventChange): void {
    const { id, to } = change;
    // A change that was read from the log may still arrive, and the other way round.
    if (id !== undefined && "users" in to) {
      // Accounts are served by messages of their own, each of which may be lost.
      if (to.users.every((user) => seen.has(seenBy(user, id)))) return;
      for (const user of unserved(to.users, id)) seen.add(seenBy(user, id));
    } else if (id !== undefined) {
      if (seen.has(id)) return;
      seen.add(id);
    }
    answers.receive(change);
  }

  /** A change whose delivery fails does not keep others from being delivered. */
  function deliver(change: Delivered): void {
    try {
      listener(change);
    } catch (error) {
      log.error({ err: error, kind: change.kind }, "change delivery failed");
    }
  }

  return {
    channel: {
      node,
      broadcast: (body) => send(names.nodes, { kind: "cluster", body }),
      send: (to, body) => send(names.node(to), { kind: "cluster", body }),
      onMessage: (handler) => {
        received = handler;
      },
      onUp: (handler) => link.onUp(handler),
    },
    publish(change) {
      if (change.kind === "event") {
        sendEvent(change);
        order.receive(change);
        return;
      }
      if (isForEveryNode(change)) send(names.nodes, change);
      // Programs of external agents wait for turns on every node.
      if (change.kind === "turns_queued" && change.agents) {
        send(names.nodes, { ...change, agents: [...change.agents] });
      }
      if (change.kind === "turns_ended") sendToRunners(change.turns);
      deliver(change);
    },
    onChange: (handler) => {
      listener = handler;
    },
    interest: interests.person,
    isMissing(change) {
      if (change.kind !== "event") return !wasDelivered(change);
      const { to, at, joins, leaves, delivery } = change;
      if (delivery === "counted" && at) return order.isMissing(at, leaves);
      if (delivery === "standing") return newcomers(joins).length > 0;
      if ("users" in to) return unserved(to.users, change.id).length > 0;
      if (!interests.hasConversation(to.conversation)) return false;
      return change.id !== undefined && !seen.has(change.id);
    },
    replay(change) {
      if (change.kind !== "event") return deliverInternal(change);
      const { to, id, delivery, joins } = change;
      if (delivery === "durable" && "users" in to) {
        return order.receive({ ...change, to: { users: unserved(to.users, id) } });
      }
      if (delivery !== "standing" || !joins || !interests.hasConversation(joins.conversation)) {
        return order.receive(change);
      }
      // Others here have seen later changes of the conversation, so it is read again.
      return order.introduce(joins.conversation, newcomers(joins));
    },
    lose: () => deliver({ kind: "events_lost" }),
    readStreams: () => answers.readStored(),
    onGap: (handler) => {
      readLog = handler;
    },
    ready: async () => {
      if (!link.isReady()) throw new Error("NATS cannot be reached");
    },
    close: async () => {
      order.stop();
      for (const end of ends) end();
      await link.close();
    },
  };
}

const seenBy = (username: string, changeId: string) => `${changeId} ${username}`;

/** Whether any node may hold what the change concerns: sockets, or a tool that waits for an answer. */
const isForEveryNode = (change: Change) =>
  change.kind === "session_ended" ||
  change.kind === "account_suspended" ||
  change.kind === "presence_changed" ||
  change.kind === "elicitation_answered";
