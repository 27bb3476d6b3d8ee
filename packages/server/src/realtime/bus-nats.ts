import type { Change, EventChange } from "../changes/change.ts";
import type { Logger } from "../observe/log.ts";
import type {
  Bus,
  CatchUp,
  Channel,
  Counter,
  Delivered,
  EventLog,
  Interest,
  Repeats,
} from "./bus.ts";
import { type NatsOptions, natsLink } from "./nats-link.ts";
import { type SequencerOptions, sequencer } from "./sequence.ts";
import { streams } from "./streams.ts";
import {
  decodeEvent,
  decodeNodeMessage,
  encodeEvent,
  encodeForEach,
  type NodeMessage,
} from "./wire.ts";

/** As many changes as the store hands out at once: of more it says that they are lost. */
const REMEMBERED = 10_000;

export interface NatsBusOptions
  extends NatsOptions,
    Pick<SequencerOptions, "graceMs" | "retryMs" | "mostHeld"> {
  /** This node's id. */
  node: string;
  /** The first word of every subject, so that several installations can share a NATS. */
  prefix?: string;
  /** Where to find what was missed. */
  events: EventLog;
  log: Logger;
}

export interface NatsBus extends Bus, CatchUp, Repeats {
  readonly channel: Channel;
}

/**
 * Several nodes: packets travel over NATS core, which keeps nothing. What is lost on the way is read
 * from the store's log, see `sequence.ts` and `heal.ts`. A node's own packets are delivered here
 * directly, so it goes on working while NATS is away.
 */
export function natsBus(options: NatsBusOptions): NatsBus {
  const { node, prefix = "parley", log } = options;
  const link = natsLink(options, `parley ${node}`, log);
  const followed = new Map<string, { people: number; end(): void }>();
  const people = new Set<string>();
  /** Which changes that no counter counts were delivered here lately, and to whom. */
  const delivered = new Set<string>();
  /** Such changes that have come since the store is being asked for those that were missed. */
  let meanwhile: EventChange[] | null = null;
  let hasUnsaid = false;
  let listener: (change: Delivered) => void = () => {};
  let told: (body: unknown) => void = () => {};

  const subject = {
    conversation: (id: string) => `${prefix}.c.${id}`,
    user: (username: string) => `${prefix}.u.${username}`,
    node: (id: string) => `${prefix}.n.${id}`,
    nodes: `${prefix}.nodes`,
  };
  const order = sequencer({
    ...options,
    deliver(packet) {
      remember(packet);
      answers.receive(packet);
    },
    lost(conversation) {
      answers.forget(conversation);
      hand({ kind: "events_lost", conversation });
    },
  });
  const answers = streams({
    deliver: hand,
    read: (message) =>
      options.events.messageText(message).catch((error) => {
        log.warn({ err: error, message }, "missing deltas could not be read");
        return null;
      }),
  });

  /** Those here who hear of a change that no counter counts, each named with it. */
  function hearers({ id, to }: EventChange): string[] {
    if (id === undefined) return [];
    if ("conversation" in to) return followed.has(to.conversation) ? [id] : [];
    return to.users.filter((user) => people.has(user)).map((user) => `${id} ${user}`);
  }

  function remember(packet: EventChange): void {
    for (const each of hearers(packet)) delivered.add(each);
    forgetOldest(delivered);
  }

  function receive(packet: EventChange): void {
    if (packet.id !== undefined) meanwhile?.push(packet);
    order.receive(packet);
  }

  /** From the first that was missed on: whoever hears an older one late hears the newest last. */
  async function repeat(read: Parameters<Repeats["repeat"]>[0]): Promise<boolean> {
    const came: EventChange[] = [];
    meanwhile = came;
    const stored = await read().finally(() => {
      meanwhile = null;
    });
    if (!stored) return false;
    const ids = new Set(stored.map(({ id }) => id));
    // What came while the store was read is newer than what it said.
    const changes = [...stored, ...came.filter(({ id }) => !ids.has(id))];
    const isMissed = (change: EventChange) => hearers(change).some((each) => !delivered.has(each));
    const missed = changes.findIndex(isMissed);
    if (missed >= 0) for (const change of changes.slice(missed)) order.receive(change);
    return true;
  }

  /** One packet that goes wrong does not keep others from being delivered. */
  function hand(packet: Delivered): void {
    try {
      listener(packet);
    } catch (error) {
      log.error({ err: error, packet: packet.kind }, "a packet could not be delivered");
    }
  }

  /** Whatever comes in may be anything. */
  const careful = (from: string, take: (payload: Uint8Array) => void) => (payload: Uint8Array) => {
    try {
      take(payload);
    } catch (error) {
      log.warn({ err: error, subject: from }, "what came over NATS was not understood");
    }
  };
  const subscribe = (to: string, take: (payload: Uint8Array) => void) =>
    link.subscribe(to, careful(to, take));

  function hear(message: NodeMessage): void {
    if (message.kind === "cluster") told(message.body);
    else hand(message);
  }
  let ups = 0;
  // Whoever has lost the link cannot tell what was still heard.
  link.onUp(() => {
    hasUnsaid ||= ++ups > 1;
  });
  const ends = [subject.nodes, subject.node(node)].map((to) =>
    subscribe(to, (payload) => hear(decodeNodeMessage(payload))),
  );
  const tell = (to: string, message: NodeMessage) => link.publish(to, JSON.stringify(message));

  /** Follows a conversation for one more person. */
  function follow(conversation: string): void {
    const known = followed.get(conversation);
    if (known) {
      known.people++;
      return;
    }
    order.open(conversation);
    const to = { conversation };
    const end = subscribe(subject.conversation(conversation), (payload) =>
      receive(decodeEvent(payload, to)),
    );
    followed.set(conversation, { people: 1, end });
  }

  function unfollow(conversation: string): void {
    const known = followed.get(conversation);
    if (!known || --known.people > 0) return;
    known.end();
    followed.delete(conversation);
    order.close(conversation);
    answers.forget(conversation);
  }

  function interest(username: string): Interest {
    const mine = new Set<string>();
    let settling = 0;
    let heard = false;
    let ended = false;
    const to = { users: [username] };
    people.add(username);
    const end = subscribe(subject.user(username), (payload) => receive(decodeEvent(payload, to)));

    function add(conversation: string): void {
      if (ended || mine.has(conversation)) return;
      mine.add(conversation);
      follow(conversation);
    }
    const isUnknown = ({ uuid }: Counter) => order.at(uuid) === undefined;

    return {
      async follow(conversations) {
        const added = conversations.filter(({ uuid }) => !mine.has(uuid));
        for (const { uuid } of added) add(uuid);
        if (ended || (heard && settling === 0 && !added.some(isUnknown))) return false;
        settling++;
        await link.settled();
        settling--;
        heard = true;
        return true;
      },
      begin(conversations) {
        for (const { uuid, seq } of conversations) order.begin(uuid, seq);
      },
      join(conversation, seq) {
        add(conversation);
        order.begin(conversation, seq);
        // Events may have come and gone before NATS knew that somebody here wants them.
        void link.settled().then(() => order.check(conversation));
      },
      leave(conversation) {
        if (mine.delete(conversation)) unfollow(conversation);
      },
      has: (conversation) => mine.has(conversation),
      end() {
        if (ended) return;
        ended = true;
        people.delete(username);
        end();
        for (const conversation of mine) unfollow(conversation);
        mine.clear();
      },
    };
  }

  function publish(packet: Change): void {
    hasUnsaid ||= !link.isReady();
    if (packet.kind === "event") {
      const { to } = packet;
      if ("conversation" in to) {
        link.publish(subject.conversation(to.conversation), encodeEvent(packet));
      } else {
        for (const [username, text] of encodeForEach(to.users, packet)) {
          link.publish(subject.user(username), text);
        }
      }
      receive(packet);
      return;
    }
    if (packet.kind === "session_ended") tell(subject.nodes, packet);
    if (packet.kind === "turns_ended") sendEach(packet.turns);
    hand(packet);
  }

  function sendEach(turns: Extract<Change, { kind: "turns_ended" }>["turns"]): void {
    for (const [runner, theirs] of Map.groupBy(turns, (turn) => turn.node)) {
      if (runner === null || runner === node) continue;
      tell(subject.node(runner), { kind: "turns_ended", turns: theirs });
    }
  }

  return {
    publish,
    onChange: (handler) => {
      listener = handler;
    },
    interest,
    async ready() {
      if (!link.isReady()) throw new Error("NATS cannot be reached");
    },
    async close() {
      order.stop();
      for (const end of ends) end();
      await link.close();
    },
    behind: order.behind,
    rejoin: order.rejoin,
    repeat,
    channel: {
      node,
      broadcast: (body) => tell(subject.nodes, { kind: "cluster", body }),
      send: (to, body) => tell(subject.node(to), { kind: "cluster", body }),
      onMessage: (handler) => {
        told = handler;
      },
      onUp: link.onUp,
      hasUnsaid: () => hasUnsaid,
    },
  };
}

function forgetOldest(known: Set<string>): void {
  for (const oldest of known) {
    if (known.size <= REMEMBERED) break;
    known.delete(oldest);
  }
}
