import type { Account } from "@parley/protocol";
import type { EventChange, Membership } from "../changes/change.ts";
import { type Client, conversationTopic, type People, type Person, userTopic } from "./people.ts";

const NO_CLIENTS: readonly Client[] = [];

export type Publish = (topic: string, data: string) => void;

/** Delivers events to the clients on this node, and applies the memberships that they change. */
export class EventDelivery {
  readonly #people: People;
  readonly #publish: Publish;

  constructor(people: People, publish: Publish) {
    this.#people = people;
    this.#publish = publish;
  }

  deliver(event: EventChange): void {
    const { to, data, account, joins, leaves } = event;
    if (account) this.#updateAccount(account);
    // Before `join` subscribes anybody: it changes which clients are excluded.
    const excluded = this.#excludedClients(event);
    if (joins) this.#join(joins, event.at?.seq ?? 0);
    const topics = "users" in to ? to.users.map(userTopic) : [conversationTopic(to.conversation)];
    if (excluded.length > 0) this.#publishExcept(excluded, topics, data);
    else for (const topic of topics) this.#publish(topic, data);
    if (leaves) this.#leave(leaves);
  }

  /** A topic reaches all its subscribers, so excluded clients are unsubscribed while it is published. */
  #publishExcept(excluded: readonly Client[], topics: readonly string[], data: string) {
    const paused = topics.flatMap((topic) =>
      excluded.filter((client) => client.isSubscribed(topic)).map((client) => ({ topic, client })),
    );
    for (const { topic, client } of paused) client.unsubscribe(topic);
    for (const topic of topics) this.#publish(topic, data);
    for (const { topic, client } of paused) client.subscribe(topic);
  }

  #excludedClients(event: EventChange): readonly Client[] {
    const { exceptUser, exceptSocket, joins } = event;
    if (exceptUser === undefined && exceptSocket === undefined && !joins) return NO_CLIENTS;
    return [
      ...this.#clientsOf(event.exceptUser),
      ...this.#requestingClient(event),
      ...this.#clientsAlreadyJoined(event),
    ];
  }

  /** The socket that made the change: it has the reply. */
  #requestingClient({ to, exceptSocket }: EventChange): Client[] {
    if (exceptSocket === undefined || !("users" in to)) return [];
    const clients = to.users.flatMap((username) => [...this.#clientsOf(username)]);
    return clients.filter((client) => client.id === exceptSocket);
  }

  /** Clients of joining accounts that receive the conversation already: the event is a duplicate. */
  #clientsAlreadyJoined({ to, joins }: EventChange): Client[] {
    if (!joins || !("users" in to)) return [];
    const topic = conversationTopic(joins.conversation);
    const clients = joins.users.flatMap((username) => [...this.#clientsOf(username)]);
    return clients.filter((client) => client.isSubscribed(topic));
  }

  #clientsOf(username: string | undefined): Iterable<Client> {
    return (username !== undefined && this.#people.get(username)?.clients) || [];
  }

  #join({ conversation, users }: Membership, seq: number): void {
    for (const person of this.#connected(users)) {
      person.membership++;
      person.interest.join(conversation, seq);
      for (const client of subscribedClients(person)) {
        client.subscribe(conversationTopic(conversation));
      }
    }
  }

  #leave({ conversation, users }: Membership): void {
    for (const person of this.#connected(users)) {
      person.membership++;
      for (const client of subscribedClients(person)) {
        client.unsubscribe(conversationTopic(conversation));
      }
      person.interest.leave(conversation);
    }
  }

  #connected(users: readonly string[]): Person[] {
    return users.flatMap((username) => this.#people.get(username) ?? []);
  }

  /** Updates the account of connected clients, unless they have a newer version of it. */
  #updateAccount(account: Account): void {
    const person = this.#people.get(account.username);
    if (!person || account.version < person.account.version) return;
    person.account = { ...person.account, ...account };
  }
}

/** Not those that are still connecting: they read their conversations again when `membership` changes. */
const subscribedClients = ({ account, clients }: Person): Client[] =>
  [...clients].filter((client) => client.isSubscribed(userTopic(account.username)));
