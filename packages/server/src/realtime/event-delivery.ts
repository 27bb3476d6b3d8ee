import type { Account } from "@parley/protocol";
import type { EventChange, Membership } from "../changes/change.ts";
import { type Client, conversationTopic, type People, type Person, userTopic } from "./people.ts";

const NO_CLIENTS: readonly Client[] = [];

export type Publish = (topic: string, data: string) => void;

/** Delivers events to the clients on this node, and applies the memberships that they change. */
export function createEventDelivery(people: People, publish: Publish) {
  /** A topic reaches all its subscribers, so excluded clients are unsubscribed while it is published. */
  function publishExcept(excluded: readonly Client[], topics: readonly string[], data: string) {
    const paused = topics.flatMap((topic) =>
      excluded.filter((client) => client.isSubscribed(topic)).map((client) => ({ topic, client })),
    );
    for (const { topic, client } of paused) client.unsubscribe(topic);
    for (const topic of topics) publish(topic, data);
    for (const { topic, client } of paused) client.subscribe(topic);
  }

  function excludedClients({ to, exceptUser, exceptSocket, joins }: EventChange) {
    if (exceptUser === undefined && exceptSocket === undefined && !joins) return NO_CLIENTS;
    const excluded = exceptUser === undefined ? [] : clientsOf([exceptUser]);
    if (!("users" in to)) return excluded;
    // The socket that made the change has the reply.
    if (exceptSocket !== undefined) {
      excluded.push(...clientsOf(to.users).filter((client) => client.id === exceptSocket));
    }
    // Clients of joining accounts that receive the conversation already: the event is a duplicate.
    if (joins) {
      const topic = conversationTopic(joins.conversation);
      excluded.push(...clientsOf(joins.users).filter((client) => client.isSubscribed(topic)));
    }
    return excluded;
  }

  const connected = (users: readonly string[]): Person[] =>
    users.flatMap((username) => people.get(username) ?? []);
  const clientsOf = (users: readonly string[]): Client[] =>
    connected(users).flatMap(({ clients }) => [...clients]);

  function join({ conversation, users }: Membership, seq: number): void {
    for (const person of connected(users)) {
      person.membership++;
      person.interest.join(conversation, seq);
      for (const client of subscribedClients(person)) {
        client.subscribe(conversationTopic(conversation));
      }
    }
  }

  function leave({ conversation, users }: Membership): void {
    for (const person of connected(users)) {
      person.membership++;
      for (const client of subscribedClients(person)) {
        client.unsubscribe(conversationTopic(conversation));
      }
      person.interest.leave(conversation);
    }
  }

  /** Updates the account of connected clients, unless they have a newer version of it. */
  function updateAccount(account: Account): void {
    const person = people.get(account.username);
    if (!person || account.version < person.account.version) return;
    person.account = { ...person.account, ...account };
  }

  return (event: EventChange): void => {
    const { to, data, account, joins, leaves } = event;
    if (account) updateAccount(account);
    // Before `join` subscribes anybody: it changes which clients are excluded.
    const excluded = excludedClients(event);
    if (joins) join(joins, event.at?.seq ?? 0);
    const topics = "users" in to ? to.users.map(userTopic) : [conversationTopic(to.conversation)];
    if (excluded.length > 0) publishExcept(excluded, topics, data);
    else for (const topic of topics) publish(topic, data);
    if (leaves) leave(leaves);
  };
}

/** Not those that are still connecting: they read their conversations again when `membership` changes. */
const subscribedClients = ({ account, clients }: Person): Client[] =>
  [...clients].filter((client) => client.isSubscribed(userTopic(account.username)));
