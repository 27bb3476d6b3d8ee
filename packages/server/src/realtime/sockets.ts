import { z } from "zod";
import { alone, type Cluster } from "./cluster.ts";

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
export function sockets(cluster: Cluster, limit: number): Sockets {
  if (cluster === alone) return singleNode;
  const here = new Map<string, OpenSockets>();
  /** The sockets on other nodes, by node and username. */
  const nodes = new Map<string, Map<string, OpenSockets>>();
  const unsent = new Set<string>();
  let noneElsewhere: (username: string) => void = () => {};
  let overLimit: (username: string) => void = () => {};

  const send = cluster.share<Count[]>({
    name: "sockets",
    schema: z.array(Count),
    receive: (counts, node) => {
      for (const count of counts) update(node, count);
    },
    state: () => [...here].map(([username, { count, newest }]) => [[username, count, newest]]),
    replace(items, node) {
      const counts = items.flat();
      const listed = new Set(counts.map(([username]) => username));
      for (const username of nodes.get(node)?.keys() ?? []) {
        if (!listed.has(username)) update(node, [username, 0, ""]);
      }
      for (const count of counts) update(node, count);
    },
    nodeGone(node) {
      for (const username of nodes.get(node)?.keys() ?? []) update(node, [username, 0, ""]);
      nodes.delete(node);
    },
  });

  function update(node: string, [username, count, newest]: Count): void {
    const accounts = nodes.get(node) ?? new Map<string, OpenSockets>();
    nodes.set(node, accounts);
    if (count > 0) accounts.set(username, { count, newest });
    else if (accounts.delete(username) && elsewhere(username) === 0) noneElsewhere(username);
    checkLimit(username);
  }

  function elsewhere(username: string): number {
    let sum = 0;
    for (const accounts of nodes.values()) sum += accounts.get(username)?.count ?? 0;
    return sum;
  }

  function checkLimit(username: string): void {
    const own = here.get(username);
    if (!own || own.count + elsewhere(username) <= limit) return;
    const others = [...nodes.values()].flatMap((accounts) => accounts.get(username) ?? []);
    if (others.every(({ newest }) => newest < own.newest)) overLimit(username);
  }

  /** Counts that change in the same iteration of the event loop are sent in one message. */
  function sendSoon(username: string): void {
    unsent.add(username);
    if (unsent.size > 1) return;
    setImmediate(() => {
      const counts = [...unsent].map((each): Count => {
        const { count, newest } = here.get(each) ?? { count: 0, newest: "" };
        return [each, count, newest];
      });
      unsent.clear();
      send(counts);
    });
  }

  return {
    count(username, count, newest) {
      if (count > 0) here.set(username, { count, newest });
      else here.delete(username);
      sendSoon(username);
      checkLimit(username);
    },
    elsewhere,
    elsewhereOfAll(prefix) {
      let sum = 0;
      for (const accounts of nodes.values()) {
        for (const [username, { count }] of accounts) if (username.startsWith(prefix)) sum += count;
      }
      return sum;
    },
    onNoneElsewhere: (listener) => {
      noneElsewhere = listener;
    },
    onOverLimit: (listener) => {
      overLimit = listener;
    },
  };
}
