import type { Logger } from "../observe/log.ts";
import type { Bus, Channel, Delivered, Interest } from "./bus.ts";
import type { Change, EventChange, InternalChange, LoggedChange, Membership } from "./change.ts";
import { Interests } from "./interests.ts";
import { NatsLink, type NatsOptions, type Subjects, subjects } from "./nats-link.ts";
import {
  decodeNodeMessage,
  encodeEvent,
  encodeForEach,
  type NodeMessage,
} from "./nats-payloads.ts";
import { SeenChanges } from "./seen-changes.ts";
import { Sequencer, type SequencerOptions } from "./sequencer.ts";
import { Streams } from "./streams.ts";

export interface NatsBusOptions
  extends NatsOptions,
    Pick<
      SequencerOptions,
      "readConversation" | "gapGraceMs" | "retryMs" | "gapTimeoutMs" | "maxHeld"
    > {
  /** This node's id. */
  node: string;
  /** The first token of every subject. Installations that share a NATS have different ones. */
  prefix?: string;
  /** Reads the stored text of a message; null when there is no such message. */
  readText(message: string): Promise<string | null>;
  log: Logger;
}

/**
 * Several nodes: changes travel over NATS core, which stores nothing. What is lost on the way is read
 * from the change log. A node delivers its own changes directly, so it works while NATS is down.
 */
export class NatsBus implements Bus {
  readonly channel: Channel;
  readonly #node: string;
  readonly #log: Logger;
  readonly #link: NatsLink;
  readonly #subjects: Subjects;
  readonly #order: Sequencer;
  readonly #answers: Streams;
  readonly #interests: Interests;
  readonly #seen = new SeenChanges();
  readonly #ends: (() => void)[];
  #listener: (change: Delivered) => void = () => {};
  #received: (body: unknown) => void = () => {};
  #readLog: () => Promise<void> = async () => {};

  constructor(options: NatsBusOptions) {
    const { node, prefix = "parley", log } = options;
    this.#node = node;
    this.#log = log;
    this.#link = new NatsLink(options, `parley ${node}`, log);
    this.#subjects = subjects(prefix);
    this.#order = new Sequencer({
      ...options,
      deliver: (change) => this.#deliverEvent(change),
      readLog: () => this.#readLog(),
      lost: (conversation) => this.#loseConversation(conversation),
      missedLeaving: (leaves) => this.#deliver({ kind: "leaving_missed", leaves }),
    });
    this.#answers = new Streams({
      deliver: (change) => this.#deliver(change),
      read: (message) => this.#readText(message, options),
    });
    this.#interests = new Interests({
      subjects: this.#subjects,
      subscribe: (subject, receive) => this.#subscribe(subject, receive),
      settled: () => this.#link.settled(),
      order: this.#order,
      closed: (conversation) => this.#answers.forget(conversation),
      joined: () => this.#catchUp(),
    });
    this.#ends = [this.#subjects.nodes, this.#subjects.node(node)].map((subject) =>
      this.#subscribe(subject, (payload) => this.#receiveMessage(decodeNodeMessage(payload))),
    );
    // What others published while this node was disconnected is in the log.
    this.#link.onUp(() => this.#catchUp());
    this.channel = {
      node,
      broadcast: (body) => this.#send(this.#subjects.nodes, { kind: "cluster", body }),
      send: (to, body) => this.#send(this.#subjects.node(to), { kind: "cluster", body }),
      onMessage: (listener) => {
        this.#received = listener;
      },
      onUp: (listener) => this.#link.onUp(listener),
    };
  }

  publish(change: Change): void {
    if (change.kind === "event") {
      this.#sendEvent(change);
      this.#order.receive(change);
      return;
    }
    if (isForEveryNode(change)) this.#send(this.#subjects.nodes, change);
    // Programs of external agents wait for turns on every node.
    if (change.kind === "turns_queued" && change.agents) {
      this.#send(this.#subjects.nodes, { ...change, agents: [...change.agents] });
    }
    if (change.kind === "turns_ended") this.#sendToRunners(change.turns);
    this.#deliver(change);
  }

  onChange(listener: (change: Delivered) => void): void {
    this.#listener = listener;
  }

  interest(username: string): Interest {
    return this.#interests.person(username);
  }

  isMissing(change: LoggedChange): boolean {
    if (change.kind !== "event") return !this.#wasDelivered(change);
    const { to, at, joins, leaves, delivery } = change;
    if (delivery === "counted" && at) return this.#order.isMissing(at, leaves);
    if (delivery === "standing") return this.#newcomers(joins).length > 0;
    if ("users" in to) return this.#unserved(to.users, change.id).length > 0;
    if (!this.#interests.hasConversation(to.conversation)) return false;
    return change.id !== undefined && !this.#seen.has(change.id);
  }

  replay(change: Change): Promise<void> | void {
    if (change.kind !== "event") return this.#deliverInternal(change);
    const { to, id, delivery, joins } = change;
    if (delivery === "durable" && "users" in to) {
      return this.#order.receive({ ...change, to: { users: this.#unserved(to.users, id) } });
    }
    if (delivery !== "standing" || !joins || !this.#interests.hasConversation(joins.conversation)) {
      return this.#order.receive(change);
    }
    // Others here have seen later changes of the conversation, so it is read again.
    return this.#order.introduce(joins.conversation, this.#newcomers(joins));
  }

  lose(): void {
    this.#deliver({ kind: "events_lost" });
  }

  readStreams(): void {
    this.#answers.readStored();
  }

  onGap(readLog: () => Promise<void>): void {
    this.#readLog = readLog;
  }

  async ready(): Promise<void> {
    if (!this.#link.isReady()) throw new Error("NATS cannot be reached");
  }

  async close(): Promise<void> {
    this.#order.stop();
    for (const end of this.#ends) end();
    await this.#link.close();
  }

  /** The joining accounts with clients here that do not receive the conversation's events yet. */
  #newcomers(joins: Membership | undefined): string[] {
    if (!joins) return [];
    return joins.users.filter((user) => this.#interests.lacks(user, joins.conversation));
  }

  /** The accounts with clients here to which a durable change was not delivered. */
  #unserved(users: readonly string[], id: string | undefined): string[] {
    if (id === undefined) return [];
    return users.filter(
      (user) => this.#interests.hasPerson(user) && !this.#seen.has(seenBy(user, id)),
    );
  }

  #sendEvent(change: EventChange): void {
    const { to } = change;
    if ("conversation" in to) {
      this.#link.publish(this.#subjects.conversation(to.conversation), encodeEvent(change));
      return;
    }
    for (const [username, text] of encodeForEach(to.users, change)) {
      this.#link.publish(this.#subjects.user(username), text);
    }
  }

  #sendToRunners(turns: Extract<Change, { kind: "turns_ended" }>["turns"]): void {
    for (const [runner, theirs] of Map.groupBy(turns, (turn) => turn.node)) {
      if (runner === null || runner === this.#node) continue;
      this.#send(this.#subjects.node(runner), { kind: "turns_ended", turns: theirs });
    }
  }

  #send(subject: string, message: NodeMessage): void {
    this.#link.publish(subject, JSON.stringify(message));
  }

  /** Payloads come from the network: one that cannot be decoded is logged and dropped. */
  #subscribe(subject: string, receive: (payload: Uint8Array) => void): () => void {
    return this.#link.subscribe(subject, (payload) => {
      try {
        receive(payload);
      } catch (error) {
        this.#log.warn({ err: error, subject }, "NATS message invalid");
      }
    });
  }

  #receiveMessage(message: NodeMessage): void {
    if (message.kind === "cluster") this.#received(message.body);
    else if (!this.#wasDelivered(message)) this.#deliverInternal(message);
  }

  #wasDelivered(change: InternalChange): boolean {
    return change.kind === "account_suspended" && this.#seen.has(change.id ?? "");
  }

  #deliverInternal(change: InternalChange): void {
    if (change.kind === "account_suspended" && change.id) this.#seen.add(change.id);
    this.#deliver(change);
  }

  #deliverEvent(change: EventChange): void {
    const { id, to } = change;
    // A change that was read from the log may still arrive, and the other way round.
    if (id !== undefined && "users" in to) {
      // Accounts are served by messages of their own, each of which may be lost.
      if (to.users.every((user) => this.#seen.has(seenBy(user, id)))) return;
      for (const user of this.#unserved(to.users, id)) this.#seen.add(seenBy(user, id));
    } else if (id !== undefined) {
      if (this.#seen.has(id)) return;
      this.#seen.add(id);
    }
    this.#answers.receive(change);
  }

  /** A change whose delivery fails does not keep others from being delivered. */
  #deliver(change: Delivered): void {
    try {
      this.#listener(change);
    } catch (error) {
      this.#log.error({ err: error, kind: change.kind }, "change delivery failed");
    }
  }

  #loseConversation(conversation: string): void {
    this.#answers.forget(conversation);
    this.#deliver({ kind: "events_lost", conversation });
  }

  #catchUp(): void {
    this.#readLog().catch((error) => this.#log.error({ err: error }, "change log read failed"));
  }

  #readText(message: string, { readText }: NatsBusOptions): Promise<string | null> {
    return readText(message).catch((error) => {
      this.#log.warn({ err: error, message }, "missing deltas read failed");
      return null;
    });
  }
}

const seenBy = (username: string, changeId: string) => `${changeId} ${username}`;

/** Whether any node may hold what the change ends: sockets, or a tool that waits for an answer. */
const isForEveryNode = (change: Change) =>
  change.kind === "session_ended" ||
  change.kind === "account_suspended" ||
  change.kind === "elicitation_answered";
