import { closeCodes } from "@parley/protocol";
import type { Bus } from "../changes/bus.ts";
import type { AccountRecord } from "../rules/accounts.ts";
import { ownerNameOf } from "../rules/agents.ts";
import type { Client, People, Person } from "./people.ts";
import type { Sockets } from "./sockets.ts";

/** Who has clients on this node, and how many sockets people have on all nodes. */
export class ConnectedPeople {
  readonly #bus: Pick<Bus, "interest">;
  readonly #counts: Sockets;
  readonly #people = new Map<string, Person>();
  #size = 0;
  /** Called when the last client of an account on any node is gone. */
  onGone: (username: string) => void = () => {};

  constructor(bus: Pick<Bus, "interest">, counts: Sockets) {
    this.#bus = bus;
    this.#counts = counts;
    counts.onNoneElsewhere((username) => {
      if (!this.#people.has(username)) this.onGone(username);
    });
    counts.onOverLimit((username) => this.#closeNewest(username));
  }

  get all(): People {
    return this.#people;
  }

  /** Number of clients on this node. */
  get size(): number {
    return this.#size;
  }

  enter(account: AccountRecord, client: Client): Person {
    const { username } = account;
    const person = this.#people.get(username) ?? {
      account,
      clients: new Set(),
      membership: 0,
      interest: this.#bus.interest(username),
    };
    this.#people.set(username, person);
    person.clients.add(client);
    this.#size++;
    this.#count(person);
    return person;
  }

  leave(person: Person, client: Client): void {
    if (!person.clients.delete(client)) return;
    this.#size--;
    const { username } = person.account;
    if (person.clients.size === 0) {
      this.#people.delete(username);
      person.interest.end();
      if (this.#counts.elsewhere(username) === 0) this.onGone(username);
    }
    this.#count(person);
  }

  sockets(username: string): number {
    return (this.#people.get(username)?.clients.size ?? 0) + this.#counts.elsewhere(username);
  }

  limitedSockets(account: Pick<AccountRecord, "username" | "owner_id">): number {
    if (account.owner_id === null) return this.sockets(account.username);
    const prefix = `${ownerNameOf(account)}:`;
    let sum = this.#counts.elsewhereOfAll(prefix);
    for (const [username, { clients }] of this.#people) {
      if (username.startsWith(prefix)) sum += clients.size;
    }
    return sum;
  }

  #count({ account: { username }, clients }: Person): void {
    this.#counts.count(username, clients.size, newestOf(clients)?.id ?? "");
  }

  #closeNewest(username: string): void {
    const person = this.#people.get(username);
    const newest = person && newestOf(person.clients);
    if (!newest) return;
    newest.close(closeCodes.goingAway, "too many sockets");
    this.leave(person, newest);
  }
}

const newestOf = (clients: Iterable<Client>): Client | undefined => [...clients].at(-1);
