import { type Account, closeCodes, type EventFrame } from "@parley/protocol";
import type { AccountRecord } from "../account.ts";
import type { Announcement, Audience, Membership } from "../announcement.ts";
import type { Bus, Packet } from "./bus.ts";

/** A live socket, as far as the hub cares. */
export interface Client {
  readonly id: string;
  readonly session_id: string;
  subscribe(topic: string): void;
  unsubscribe(topic: string): void;
  isSubscribed(topic: string): boolean;
  close(code: number, reason: string): void;
}

/** Everyone connected under one account shares one of these. */
export interface Person {
  account: AccountRecord;
  readonly clients: Set<Client>;
  /** Goes up whenever the account joins or leaves a conversation. */
  membership: number;
}

export interface Hub {
  /** Counts a client in before its conversations are known; they follow by `listen`. */
  enter(account: AccountRecord, client: Client): Person;
  listen(person: Person, client: Client, conversations: readonly string[]): void;
  leave(person: Person, client: Client): void;
  person(username: string): Person | undefined;
  /** The door for what was committed. */
  announce(announcements: readonly Announcement[]): void;
  /** The door for what is not stored: typing, deltas. */
  pass(frame: EventFrame, to: Audience, exceptUser?: string): void;
  /** Told when the last client of an account has gone. */
  onGone(listener: (account: Account) => void): void;
  /** Told of turns that were queued or ended, here or on another node. */
  onTurns(listener: (packet: TurnPacket) => void): void;
  /** How many sockets are open. */
  size(): number;
  clients(): Iterable<Client>;
}

export type TurnPacket = Exclude<Packet, { kind: "event" | "session_ended" }>;

export type Publish = (topic: string, data: string) => void;

const conversationTopic = (id: string) => `c/${id}`;
const userTopic = (username: string) => `u/${username}`;

export function hub(bus: Bus, publish: Publish): Hub {
  const people = new Map<string, Person>();
  let gone: (account: Account) => void = () => {};
  let turns: (packet: TurnPacket) => void = () => {};
  let size = 0;

  bus.onPacket((packet) => {
    if (packet.kind === "event") deliver(packet);
    else if (packet.kind === "session_ended") endSession(packet.session_id);
    else turns(packet);
  });

  function deliver(packet: Extract<Packet, { kind: "event" }>): void {
    if (packet.joins) move(packet.joins, "subscribe");
    const { to, data } = packet;
    const topics = "users" in to ? to.users.map(userTopic) : [conversationTopic(to.conversation)];
    const excluded = [...clientsOf(packet.exceptUser)].concat(socketOf(packet));
    // A topic reaches all who listen to it; those left out look away for a moment.
    const muted = topics.flatMap((topic) =>
      excluded.filter((client) => client.isSubscribed(topic)).map((client) => ({ topic, client })),
    );
    for (const { topic, client } of muted) client.unsubscribe(topic);
    for (const topic of topics) publish(topic, data);
    for (const { topic, client } of muted) client.subscribe(topic);
    if (packet.leaves) move(packet.leaves, "unsubscribe");
  }

  function socketOf({ to, exceptSocket }: Extract<Packet, { kind: "event" }>): Client[] {
    if (exceptSocket === undefined || !("users" in to)) return [];
    const all = to.users.flatMap((username) => [...clientsOf(username)]);
    return all.filter((client) => client.id === exceptSocket);
  }

  const clientsOf = (username: string | undefined): Iterable<Client> =>
    (username !== undefined && people.get(username)?.clients) || [];

  function move({ conversation, users }: Membership, step: "subscribe" | "unsubscribe"): void {
    for (const username of users) {
      const person = people.get(username);
      if (!person) continue;
      person.membership++;
      for (const client of person.clients) {
        // One that is still connecting looks again; until it listens it hears nothing.
        if (client.isSubscribed(userTopic(username))) client[step](conversationTopic(conversation));
      }
    }
  }

  function* clients(): Generator<Client> {
    for (const person of people.values()) yield* person.clients;
  }

  function endSession(sessionId: string): void {
    for (const client of clients()) {
      if (client.session_id === sessionId) client.close(closeCodes.signedOut, "signed out");
    }
  }

  function packetOf(announcement: Announcement): Packet {
    if ("endedSession" in announcement) {
      return { kind: "session_ended", session_id: announcement.endedSession };
    }
    if ("queuedTurns" in announcement) return { kind: "turns_queued" };
    if ("endedTurns" in announcement) return { kind: "turns_ended", ids: announcement.endedTurns };
    const { frame, ...rest } = announcement;
    rename(frame);
    return { kind: "event", data: JSON.stringify(frame), ...rest };
  }

  /** Live sockets know their account; a new display name is theirs from now on. */
  function rename(frame: EventFrame): void {
    if (frame.method !== "events.accountUpdated") return;
    const person = people.get(frame.params.username);
    if (person) person.account = { ...person.account, ...frame.params };
  }

  return {
    enter(account, client) {
      const person = people.get(account.username) ?? { account, clients: new Set(), membership: 0 };
      people.set(account.username, person);
      person.clients.add(client);
      size++;
      return person;
    },
    listen(person, client, conversations) {
      client.subscribe(userTopic(person.account.username));
      for (const id of conversations) client.subscribe(conversationTopic(id));
    },
    leave(person, client) {
      if (!person.clients.delete(client)) return;
      size--;
      if (person.clients.size > 0) return;
      people.delete(person.account.username);
      gone(person.account);
    },
    person: (username) => people.get(username),
    announce(announcements) {
      for (const announcement of announcements) {
        bus.publish(packetOf(announcement));
      }
    },
    pass: (frame, to, exceptUser) =>
      bus.publish({ kind: "event", data: JSON.stringify(frame), to, exceptUser }),
    onGone: (listener) => {
      gone = listener;
    },
    onTurns: (listener) => {
      turns = listener;
    },
    size: () => size,
    clients,
  };
}
