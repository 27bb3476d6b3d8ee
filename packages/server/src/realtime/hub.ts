import type { Bus, Counter, Delivered } from "../changes/bus.ts";
import { alone } from "../changes/cluster.ts";
import type { AccountRecord } from "../rules/accounts.ts";
import {
  closeAfterLoss,
  closeClientsOfAccount,
  closeClientsOfSession,
  readMembershipsAgain,
} from "./close-clients.ts";
import { ConnectedPeople } from "./connected-people.ts";
import { EventDelivery, type Publish } from "./event-delivery.ts";
import { allClients, type Client, conversationTopic, type Person, userTopic } from "./people.ts";
import { countSockets } from "./sockets.ts";
import { TypingExpiry } from "./typing.ts";

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

export function createHub(
  bus: Pick<Bus, "interest">,
  publish: Publish,
  counts = countSockets(alone, Number.POSITIVE_INFINITY),
): Hub {
  const connected = new ConnectedPeople(bus, counts);
  const people = connected.all;
  const events = new EventDelivery(people, publish);
  const typing = new TypingExpiry((event) => events.deliver(event));
  connected.onGone = (username) => typing.gone(username);
  return {
    enter: (account, client) => connected.enter(account, client),
    async follow(person, conversations) {
      if (await person.interest.follow(conversations)) person.membership++;
    },
    listen(person, client, conversations) {
      person.interest.begin(conversations);
      client.subscribe(userTopic(person.account.username));
      for (const { uuid } of conversations) client.subscribe(conversationTopic(uuid));
    },
    leave: (person, client) => connected.leave(person, client),
    person: (username) => people.get(username),
    people: () => people.values(),
    receive(change) {
      switch (change.kind) {
        case "event":
          events.deliver(change);
          return typing.note(change);
        case "session_ended":
          return closeClientsOfSession(people, change.session_id);
        case "account_suspended":
          return closeClientsOfAccount(people, change.username);
        case "events_lost":
          return closeAfterLoss(allClients(people), change.conversation);
        case "leaving_missed":
          return readMembershipsAgain(people, change.leaves);
      }
    },
    size: () => connected.size,
    sockets: (username) => connected.sockets(username),
    limitedSockets: (account) => connected.limitedSockets(account),
    clients: () => allClients(people),
  };
}
