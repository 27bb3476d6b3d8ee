import { type Account, closeCodes } from "@parley/protocol";
import type { EventChange, Membership } from "../changes/change.ts";
import type { AccountRecord } from "../rules/accounts.ts";
import type { Bus, Counter, Delivered, Interest } from "./bus.ts";
import { alone } from "./cluster.ts";
import { sockets as socketCounts } from "./sockets.ts";

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
  /** Goes up whenever what was read of the account's conversations may be out of date. */
  membership: number;
  /** What comes here from other nodes for the person's sake. */
  readonly interest: Interest;
}

export interface Hub {
  /** Counts a client in before its conversations are known; they follow by `listen`. */
  enter(account: AccountRecord, client: Client): Person;
  /** Has events of these conversations come here. `membership` goes up if they did not before. */
  follow(person: Person, conversations: readonly Counter[]): Promise<void>;
  /** Lets a client hear them, with events beyond the counters given, which were read after `follow`. */
  listen(person: Person, client: Client, conversations: readonly Counter[]): void;
  leave(person: Person, client: Client): void;
  person(username: string): Person | undefined;
  people(): Iterable<Person>;
  /** Delivers a change to the sockets that it concerns. */
  receive(change: Delivered): void;
  /** Told when the last client of an account has gone, here and everywhere. */
  onGone(listener: (account: Pick<Account, "username">) => void): void;
  /** Closes the sockets of a session. */
  endSession(sessionId: string): void;
  /** How many sockets are open here. */
  size(): number;
  /** How many sockets an account has open, here and elsewhere. */
  sockets(username: string): number;
  clients(): Iterable<Client>;
}

export type Publish = (topic: string, data: string) => void;

const conversationTopic = (id: string) => `c/${id}`;
const userTopic = (username: string) => `u/${username}`;

export function hub(
  bus: Pick<Bus, "interest">,
  publish: Publish,
  counts = socketCounts(alone, Number.POSITIVE_INFINITY),
): Hub {
  const people = new Map<string, Person>();
  let gone: (account: Pick<Account, "username">) => void = () => {};
  let size = 0;

  function receive(change: Delivered): void {
    if (change.kind === "event") deliver(change);
    else if (change.kind === "session_ended") endSession(change.session_id);
    else if (change.kind === "events_lost") sendBack(change.conversation);
  }

  function deliver(packet: EventChange): void {
    if (packet.account) rename(packet.account);
    const excluded = [...clientsOf(packet.exceptUser), ...socketOf(packet), ...informed(packet)];
    if (packet.joins) join(packet.joins, packet.at?.seq ?? 0);
    const { to, data } = packet;
    const topics = "users" in to ? to.users.map(userTopic) : [conversationTopic(to.conversation)];
    // A topic reaches all who listen to it; those left out look away for a moment.
    const muted = topics.flatMap((topic) =>
      excluded.filter((client) => client.isSubscribed(topic)).map((client) => ({ topic, client })),
    );
    for (const { topic, client } of muted) client.unsubscribe(topic);
    for (const topic of topics) publish(topic, data);
    for (const { topic, client } of muted) client.subscribe(topic);
    if (packet.leaves) part(packet.leaves);
  }

  function socketOf({ to, exceptSocket }: EventChange): Client[] {
    if (exceptSocket === undefined || !("users" in to)) return [];
    const all = to.users.flatMap((username) => [...clientsOf(username)]);
    return all.filter((client) => client.id === exceptSocket);
  }

  /** Those who know already that they take part: they are not told twice. */
  function informed({ to, joins }: EventChange): Client[] {
    if (!joins || !("users" in to)) return [];
    const topic = conversationTopic(joins.conversation);
    const all = joins.users.flatMap((username) => [...clientsOf(username)]);
    return all.filter((client) => client.isSubscribed(topic));
  }

  const clientsOf = (username: string | undefined): Iterable<Client> =>
    (username !== undefined && people.get(username)?.clients) || [];

  function join({ conversation, users }: Membership, seq: number): void {
    for (const person of present(users)) {
      person.membership++;
      person.interest.join(conversation, seq);
      for (const client of listening(person)) client.subscribe(conversationTopic(conversation));
    }
  }

  function part({ conversation, users }: Membership): void {
    for (const person of present(users)) {
      person.membership++;
      for (const client of listening(person)) client.unsubscribe(conversationTopic(conversation));
      person.interest.leave(conversation);
    }
  }

  const present = (users: readonly string[]) =>
    users.flatMap((username) => people.get(username) ?? []);

  /** One that is still connecting looks again; until it listens it hears nothing. */
  const listening = ({ account, clients }: Person) =>
    [...clients].filter((client) => client.isSubscribed(userTopic(account.username)));

  function* clients(): Generator<Client> {
    for (const person of people.values()) yield* person.clients;
  }

  function endSession(sessionId: string): void {
    for (const client of clients()) {
      if (client.session_id === sessionId) client.close(closeCodes.signedOut, "signed out");
    }
  }

  /** They would miss something without knowing it: they come back, and catch up. */
  function sendBack(conversation: string | undefined): void {
    const topic = conversation && conversationTopic(conversation);
    for (const client of clients()) {
      if (topic && !client.isSubscribed(topic)) continue;
      if (topic) client.unsubscribe(topic);
      client.close(closeCodes.goingAway, "events were missed, please reconnect");
    }
  }

  /** Live sockets know their account; a newer display name is theirs from now on. */
  function rename(account: Account): void {
    const person = people.get(account.username);
    if (!person || account.version < person.account.version) return;
    person.account = { ...person.account, ...account };
  }

  function count({ account: { username }, clients: open }: Person): void {
    counts.count(username, open.size, [...open].at(-1)?.id ?? "");
  }

  function leave(person: Person, client: Client): void {
    if (!person.clients.delete(client)) return;
    size--;
    const { username } = person.account;
    if (person.clients.size === 0) {
      people.delete(username);
      person.interest.end();
      if (counts.elsewhere(username) === 0) gone({ username });
    }
    count(person);
  }

  counts.onNoneElsewhere((username) => {
    if (!people.has(username)) gone({ username });
  });
  counts.onCrowded((username) => {
    const person = people.get(username);
    const newest = [...(person?.clients ?? [])].at(-1);
    if (!person || !newest) return;
    newest.close(closeCodes.goingAway, "too many sockets");
    leave(person, newest);
  });

  return {
    enter(account, client) {
      const { username } = account;
      const person = people.get(username) ?? {
        account,
        clients: new Set(),
        membership: 0,
        interest: bus.interest(username),
      };
      people.set(username, person);
      person.clients.add(client);
      size++;
      count(person);
      return person;
    },
    async follow(person, conversations) {
      if (await person.interest.follow(conversations)) person.membership++;
    },
    listen(person, client, conversations) {
      person.interest.begin(conversations);
      client.subscribe(userTopic(person.account.username));
      for (const { uuid } of conversations) client.subscribe(conversationTopic(uuid));
    },
    leave,
    person: (username) => people.get(username),
    people: () => people.values(),
    receive,
    onGone: (listener) => {
      gone = listener;
    },
    endSession,
    size: () => size,
    sockets: (username) => (people.get(username)?.clients.size ?? 0) + counts.elsewhere(username),
    clients,
  };
}
