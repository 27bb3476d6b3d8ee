import { closeCodes } from "@parley/protocol";
import type { Bus, Counter, Delivered } from "../changes/bus.ts";
import { alone } from "../changes/cluster.ts";
import type { AccountRecord } from "../rules/accounts.ts";
import { ownerNameOf } from "../rules/agents.ts";
import { createEventDelivery, type Publish } from "./event-delivery.ts";
import { type Client, conversationTopic, type Person, userTopic } from "./people.ts";
import { countSockets } from "./sockets.ts";
import { createTypingExpiry } from "./typing.ts";

/** Told of the sockets of people on this node. */
export interface SocketListener {
  /** The person has their first socket here, or none any more. */
  connected(person: Person): void;
  /** A client is gone. */
  closed(person: Person, client: Client): void;
}

const nobody: SocketListener = { connected: () => {}, closed: () => {} };

/** The sockets of this node, and the topics that they are subscribed to. */
export type Hub = ReturnType<typeof createHub>;

export function createHub(
  bus: Pick<Bus, "interest">,
  publish: Publish,
  counts = countSockets(alone, Number.POSITIVE_INFINITY),
) {
  const people = new Map<string, Person>();
  let size = 0;
  const deliver = createEventDelivery(people, publish);
  const typing = createTypingExpiry(deliver);
  counts.onNoneElsewhere((username) => {
    if (!people.has(username)) typing.gone(username);
  });
  counts.onOverLimit((username) => {
    const person = people.get(username);
    const newest = person && newestOf(person);
    if (!newest) return;
    newest.close(closeCodes.goingAway, "too many sockets");
    leave(person, newest);
  });

  let listener: SocketListener = nobody;

  const clients = (): Iterable<Client> => people.values().flatMap((person) => person.clients);
  const count = (person: Person) =>
    counts.count(person.account.username, person.clients.size, newestOf(person)?.id ?? "");
  const sockets = (username: string) =>
    (people.get(username)?.clients.size ?? 0) + counts.elsewhere(username);

  function leave(person: Person, client: Client): void {
    if (!person.clients.delete(client)) return;
    size--;
    listener.closed(person, client);
    const { username } = person.account;
    if (person.clients.size === 0) {
      people.delete(username);
      person.interest.end();
      if (counts.elsewhere(username) === 0) typing.gone(username);
    }
    count(person);
    if (isPerson(person) && !client.isCall && !hasSocket(person)) listener.connected(person);
  }

  return {
    /** Registers a client. It receives events once `listen` is called. */
    enter(account: AccountRecord, client: Client): Person {
      const { username } = account;
      const person = people.get(username) ?? {
        account,
        clients: new Set(),
        membership: 0,
        interest: bus.interest(username),
      };
      const isFirst = isPerson(person) && !client.isCall && !hasSocket(person);
      people.set(username, person);
      person.clients.add(client);
      size++;
      count(person);
      if (isFirst) listener.connected(person);
      return person;
    },
    /**
     * Subscribes this node to the events of these conversations. Increments `membership` if it may
     * have missed some of them until now.
     */
    async follow(person: Person, conversations: readonly Counter[]): Promise<void> {
      if (await person.interest.follow(conversations)) person.membership++;
    },
    /** Delivers events after these counters, which were read after `follow`, to a client. */
    listen(person: Person, client: Client, conversations: readonly Counter[]): void {
      person.interest.begin(conversations);
      client.subscribe(userTopic(person.account.username));
      for (const { uuid } of conversations) client.subscribe(conversationTopic(uuid));
    },
    leave,
    person: (username: string) => people.get(username),
    people: () => people.values(),
    /** Delivers a change to the sockets that it concerns. */
    receive(change: Delivered): void {
      switch (change.kind) {
        case "event":
          deliver(change);
          typing.note(change);
          break;
        case "session_ended":
          for (const client of clients()) {
            if (client.session_id !== change.session_id) continue;
            client.close(closeCodes.signedOut, "signed out");
          }
          break;
        case "account_suspended":
          for (const client of people.get(change.username)?.clients ?? []) {
            client.close(closeCodes.signedOut, "this account is suspended or deleted");
          }
          break;
        case "events_lost":
          closeAfterLoss(clients(), change.conversation);
          break;
        // Clients that are connecting read their conversations again, and so do others when they reconnect.
        case "leaving_missed":
          for (const person of change.leaves.users.flatMap((each) => people.get(each) ?? [])) {
            person.membership++;
            closeAfterLoss(person.clients, change.leaves.conversation);
          }
      }
    },
    /** Set once, before the first client. */
    onSockets(to: SocketListener): void {
      listener = to;
    },
    /** Whether a socket of this person is open on this node. */
    isConnected: (username: string) => hasSocket(people.get(username)),
    /** The people of whom a socket is open on this node. */
    *connected(): Generator<string> {
      for (const [username, person] of people) {
        if (isPerson(person) && hasSocket(person)) yield username;
      }
    },
    /** Number of open sockets on this node. */
    size: () => size,
    /** Number of open sockets of an account on all nodes. */
    sockets,
    /**
     * Number of open sockets on all nodes that count against the limit of an account: its own, or those
     * of all agents of its owner.
     */
    limitedSockets(account: Pick<AccountRecord, "username" | "owner_id">): number {
      if (account.owner_id === null) return sockets(account.username);
      const prefix = `${ownerNameOf(account)}:`;
      let sum = counts.elsewhereOfAll(prefix);
      for (const [username, person] of people) {
        if (username.startsWith(prefix)) sum += person.clients.size;
      }
      return sum;
    },
    clients,
  };
}

const isPerson = ({ account }: Person) => account.kind === "human";

const hasSocket = (person: Person | undefined): boolean =>
  person?.clients.values().some(({ isCall }) => !isCall) ?? false;

const newestOf = ({ clients }: Person): Client | undefined => [...clients].at(-1);

/** Closes the clients that would have an unnoticed gap: they catch up when they reconnect. */
function closeAfterLoss(clients: Iterable<Client>, conversation: string | undefined): void {
  const topic = conversation && conversationTopic(conversation);
  for (const client of clients) {
    if (topic && !client.isSubscribed(topic)) continue;
    if (topic) client.unsubscribe(topic);
    client.close(closeCodes.goingAway, "events were missed, please reconnect");
  }
}
