import { type Account, closeCodes } from "@parley/protocol";
import type { Membership } from "../changes/change.ts";
import type { AccountRecord } from "../rules/accounts.ts";
import { ownerNameOf } from "../rules/agents.ts";
import type { Bus, Counter, Delivered } from "./bus.ts";
import { alone } from "./cluster.ts";
import { EventDelivery, type Publish } from "./event-delivery.ts";
import { allClients, type Client, conversationTopic, type Person, userTopic } from "./people.ts";
import { sockets as socketCounts } from "./sockets.ts";

/** The sockets of this node, and the topics that they are subscribed to. */
export interface Hub {
  /** Registers a client. It receives events once `listen` is called. */
  enter(account: AccountRecord, client: Client): Person;
  /**
   * Subscribes this node to the events of these conversations. Increments `membership` if it may
   * have missed some of them until now.
   */
  follow(person: Person, conversations: readonly Counter[]): Promise<void>;
  /** Delivers events after these counters, which were read after `follow`, to a client. */
  listen(person: Person, client: Client, conversations: readonly Counter[]): void;
  leave(person: Person, client: Client): void;
  person(username: string): Person | undefined;
  people(): Iterable<Person>;
  /** Delivers a change to the sockets that it concerns. */
  receive(change: Delivered): void;
  /** Called when the last client of an account on any node is gone. */
  onGone(listener: (account: Pick<Account, "username">) => void): void;
  /** Closes the sockets of a session. */
  endSession(sessionId: string): void;
  /** Number of open sockets on this node. */
  size(): number;
  /** Number of open sockets of an account on all nodes. */
  sockets(username: string): number;
  /**
   * Number of open sockets on all nodes that count against the limit of an account: its own, or those
   * of all agents of its owner.
   */
  limitedSockets(account: Pick<AccountRecord, "username" | "owner_id">): number;
  clients(): Iterable<Client>;
}

export function hub(
  bus: Pick<Bus, "interest">,
  publish: Publish,
  counts = socketCounts(alone, Number.POSITIVE_INFINITY),
): Hub {
  const people = new Map<string, Person>();
  const events = new EventDelivery(people, publish);
  const clients = () => allClients(people);
  let notifyGone: (account: Pick<Account, "username">) => void = () => {};
  let size = 0;

  const sockets = (username: string) =>
    (people.get(username)?.clients.size ?? 0) + counts.elsewhere(username);

  function receive(change: Delivered): void {
    if (change.kind === "event") events.deliver(change);
    else if (change.kind === "session_ended") endSession(change.session_id);
    else if (change.kind === "account_suspended") closeAccount(change.username);
    else if (change.kind === "events_lost") closeAfterLoss(clients(), change.conversation);
    else if (change.kind === "leaving_missed") readMembershipsAgain(change.leaves);
  }

  function endSession(sessionId: string): void {
    for (const client of clients()) {
      if (client.session_id === sessionId) client.close(closeCodes.signedOut, "signed out");
    }
  }

  function closeAccount(username: string): void {
    for (const client of people.get(username)?.clients ?? []) {
      client.close(closeCodes.signedOut, "this account is suspended or deleted");
    }
  }

  /** Clients that are connecting read their conversations again, and so do others when they reconnect. */
  function readMembershipsAgain({ conversation, users }: Membership): void {
    for (const person of users.flatMap((username) => people.get(username) ?? [])) {
      person.membership++;
      closeAfterLoss(person.clients, conversation);
    }
  }

  /** Closes the clients that would have an unnoticed gap: they catch up when they reconnect. */
  function closeAfterLoss(open: Iterable<Client>, conversation: string | undefined): void {
    const topic = conversation && conversationTopic(conversation);
    for (const client of open) {
      if (topic && !client.isSubscribed(topic)) continue;
      if (topic) client.unsubscribe(topic);
      client.close(closeCodes.goingAway, "events were missed, please reconnect");
    }
  }

  function updateCount({ account: { username }, clients: open }: Person): void {
    counts.count(username, open.size, [...open].at(-1)?.id ?? "");
  }

  function enter(account: AccountRecord, client: Client): Person {
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
    updateCount(person);
    return person;
  }

  function leave(person: Person, client: Client): void {
    if (!person.clients.delete(client)) return;
    size--;
    const { username } = person.account;
    if (person.clients.size === 0) {
      people.delete(username);
      person.interest.end();
      if (counts.elsewhere(username) === 0) notifyGone({ username });
    }
    updateCount(person);
  }

  counts.onNoneElsewhere((username) => {
    if (!people.has(username)) notifyGone({ username });
  });
  counts.onOverLimit((username) => {
    const person = people.get(username);
    const newest = [...(person?.clients ?? [])].at(-1);
    if (!person || !newest) return;
    newest.close(closeCodes.goingAway, "too many sockets");
    leave(person, newest);
  });

  return {
    enter,
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
      notifyGone = listener;
    },
    endSession,
    size: () => size,
    sockets,
    limitedSockets(account) {
      if (account.owner_id === null) return sockets(account.username);
      const prefix = `${ownerNameOf(account)}:`;
      let sum = counts.elsewhereOfAll(prefix);
      for (const [username, { clients }] of people) {
        if (username.startsWith(prefix)) sum += clients.size;
      }
      return sum;
    },
    clients,
  };
}
