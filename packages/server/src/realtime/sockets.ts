import { z } from "zod";
import { alone, type Cluster } from "../changes/cluster.ts";

/** Counts the open sockets of each account on all nodes. */
export interface Sockets {
  /** Sets the number of sockets that an account has on this node, and the id of the newest. */
  count(username: string, here: number, newest: string): void;
  /** Number of sockets that an account has on other nodes. */
  elsewhere(username: string): number;
  /** Number of sockets that all accounts whose username begins so have on other nodes. */
  elsewhereOfAll(prefix: string): number;
  /** Called when the account's last socket on another node is gone. */
  onNoneElsewhere(listener: (username: string) => void): void;
  /** Called when an account has more sockets than the limit and the newest is on this node. */
  onOverLimit(listener: (username: string) => void): void;
}

/** Socket ids sort by the time at which the sockets opened. */
const Count = z.tuple([
  z.string().describe("username"),
  z.int().nonnegative().describe("number of sockets"),
  z.string().describe("id of the newest socket"),
]);
type Count = z.infer<typeof Count>;

interface OpenSockets {
  count: number;
  newest: string;
}

const singleNode: Sockets = {
  count: () => {},
  elsewhere: () => 0,
  elsewhereOfAll: () => 0,
  onNoneElsewhere: () => {},
  onOverLimit: () => {},
};

/**
 * The limit is checked before a socket opens, against the sockets of all nodes. If two nodes accept
 * the last allowed socket at the same time, the node with the newer one closes it.
 */
export const countSockets = (cluster: Cluster, limit: number): Sockets =>
  cluster === alone ? singleNode : new ClusterSockets(cluster, limit);

class ClusterSockets implements Sockets {
  readonly #limit: number;
  readonly #here = new Map<string, OpenSockets>();
  readonly #elsewhere = new SocketsElsewhere();
  readonly #send: (counts: Count[]) => void;
  /** Accounts whose counts have changed since they were sent. */
  readonly #unsent = new Set<string>();
  #noneElsewhere: (username: string) => void = () => {};
  #overLimit: (username: string) => void = () => {};

  constructor(cluster: Cluster, limit: number) {
    this.#limit = limit;
    this.#send = cluster.share<Count[]>({
      name: "sockets",
      schema: z.array(Count),
      receive: (counts, node) => {
        for (const count of counts) this.#update(node, count);
      },
      state: () => [...this.#here.keys()].map((username) => [this.#countOf(username)]),
      replace: (items, node) => this.#replace(node, items.flat()),
      nodeGone: (node) => this.#replace(node, []),
    });
  }

  count(username: string, count: number, newest: string): void {
    if (count > 0) this.#here.set(username, { count, newest });
    else this.#here.delete(username);
    this.#sendSoon(username);
    this.#checkLimit(username);
  }

  elsewhere(username: string): number {
    return this.#elsewhere.count(username);
  }

  elsewhereOfAll(prefix: string): number {
    return this.#elsewhere.countOfAll(prefix);
  }

  onNoneElsewhere(listener: (username: string) => void): void {
    this.#noneElsewhere = listener;
  }

  onOverLimit(listener: (username: string) => void): void {
    this.#overLimit = listener;
  }

  #replace(node: string, counts: readonly Count[]): void {
    const listed = new Set(counts.map(([username]) => username));
    for (const username of this.#elsewhere.usernames(node)) {
      if (!listed.has(username)) this.#update(node, [username, 0, ""]);
    }
    for (const count of counts) this.#update(node, count);
  }

  #update(node: string, count: Count): void {
    const [username] = count;
    const isGone = this.#elsewhere.update(node, count);
    if (isGone && this.elsewhere(username) === 0) this.#noneElsewhere(username);
    this.#checkLimit(username);
  }

  #checkLimit(username: string): void {
    const own = this.#here.get(username);
    if (!own || own.count + this.elsewhere(username) <= this.#limit) return;
    const others = this.#elsewhere.of(username);
    if (others.every(({ newest }) => newest < own.newest)) this.#overLimit(username);
  }

  /** Counts that change in the same iteration of the event loop are sent in one message. */
  #sendSoon(username: string): void {
    this.#unsent.add(username);
    if (this.#unsent.size > 1) return;
    setImmediate(() => {
      const counts = [...this.#unsent].map((each) => this.#countOf(each));
      this.#unsent.clear();
      this.#send(counts);
    });
  }

  #countOf(username: string): Count {
    const { count, newest } = this.#here.get(username) ?? { count: 0, newest: "" };
    return [username, count, newest];
  }
}

/** The sockets of accounts on other nodes, by node and username. */
class SocketsElsewhere {
  readonly #nodes = new Map<string, Map<string, OpenSockets>>();

  /** Returns whether the last socket of the account on this node is gone. */
  update(node: string, [username, count, newest]: Count): boolean {
    const accounts = this.#nodes.get(node) ?? new Map<string, OpenSockets>();
    if (count > 0) this.#nodes.set(node, accounts.set(username, { count, newest }));
    const isGone = count === 0 && accounts.delete(username);
    if (accounts.size === 0) this.#nodes.delete(node);
    return isGone;
  }

  /** The accounts that have sockets on a node. */
  usernames(node: string): string[] {
    return [...(this.#nodes.get(node)?.keys() ?? [])];
  }

  of(username: string): OpenSockets[] {
    return [...this.#nodes.values()].flatMap((accounts) => accounts.get(username) ?? []);
  }

  count(username: string): number {
    let sum = 0;
    for (const accounts of this.#nodes.values()) sum += accounts.get(username)?.count ?? 0;
    return sum;
  }

  countOfAll(prefix: string): number {
    let sum = 0;
    for (const accounts of this.#nodes.values()) {
      for (const [username, { count }] of accounts) if (username.startsWith(prefix)) sum += count;
    }
    return sum;
  }
}
