import { z } from "zod";
import { alone, type Cluster } from "../changes/cluster.ts";

/** Socket ids sort by the time at which the sockets opened. */
const Count = z.tuple([
  z.string().describe("username"),
  z.int().nonnegative().describe("number of sockets"),
  z.string().describe("id of the newest socket"),
]);
type Count = z.infer<typeof Count>;

/** The open sockets of accounts on one node, by username. */
type OpenSockets = Map<string, { count: number; newest: string }>;

/**
 * Counts the open sockets of each account on all nodes. The limit is checked before a socket opens, against
 * the sockets of all nodes. If two nodes accept the last allowed socket at the same time, the node with the
 * newer one closes it.
 */
export function countSockets(cluster: Cluster, limit: number) {
  const here: OpenSockets = new Map();
  const others = new Map<string, OpenSockets>();
  /** Accounts whose counts have changed since they were sent. */
  const unsent = new Set<string>();
  let noneElsewhere = (_username: string) => {};
  let overLimit = (_username: string) => {};

  const countOf = (username: string): Count => {
    const { count, newest } = here.get(username) ?? { count: 0, newest: "" };
    return [username, count, newest];
  };

  const send = cluster.share<Count[]>({
    name: "sockets",
    schema: z.array(Count),
    receive: (counts, node) => counts.forEach((count) => void update(node, count)),
    state: () => [...here.keys()].map((username) => [countOf(username)]),
    replace: (items, node) => replace(node, items.flat()),
    nodeGone: (node) => replace(node, []),
  });

  function replace(node: string, counts: readonly Count[]): void {
    const listed = new Set(counts.map(([username]) => username));
    for (const username of [...(others.get(node)?.keys() ?? [])]) {
      if (!listed.has(username)) update(node, [username, 0, ""]);
    }
    for (const count of counts) update(node, count);
  }

  function update(node: string, [username, count, newest]: Count): void {
    const accounts: OpenSockets = others.get(node) ?? new Map();
    if (count > 0) others.set(node, accounts.set(username, { count, newest }));
    const isGone = count === 0 && accounts.delete(username);
    if (accounts.size === 0) others.delete(node);
    if (isGone && elsewhere(username) === 0) noneElsewhere(username);
    checkLimit(username);
  }

  function checkLimit(username: string): void {
    const own = here.get(username);
    if (!own || own.count + elsewhere(username) <= limit) return;
    const isNewest = others
      .values()
      .every((accounts) => (accounts.get(username)?.newest ?? "") < own.newest);
    if (isNewest) overLimit(username);
  }

  /** Counts that change in the same iteration of the event loop are sent in one message. */
  function sendSoon(username: string): void {
    unsent.add(username);
    if (unsent.size > 1) return;
    setImmediate(() => {
      const counts = [...unsent].map(countOf);
      unsent.clear();
      send(counts);
    });
  }

  function elsewhere(username: string): number {
    let sum = 0;
    for (const accounts of others.values()) sum += accounts.get(username)?.count ?? 0;
    return sum;
  }

  return {
    /** Sets the number of sockets that an account has on this node, and the id of the newest. */
    count(username: string, count: number, newest: string): void {
      if (cluster === alone) return;
      if (count > 0) here.set(username, { count, newest });
      else here.delete(username);
      sendSoon(username);
      checkLimit(username);
    },
    /** Number of sockets that an account has on other nodes. */
    elsewhere,
    /** Number of sockets that all accounts whose username begins so have on other nodes. */
    elsewhereOfAll(prefix: string): number {
      let sum = 0;
      for (const accounts of others.values()) {
        for (const [username, { count }] of accounts) if (username.startsWith(prefix)) sum += count;
      }
      return sum;
    },
    /** Called when the account's last socket on another node is gone. */
    onNoneElsewhere(listener: (username: string) => void): void {
      noneElsewhere = listener;
    },
    /** Called when an account has more sockets than the limit and the newest is on this node. */
    onOverLimit(listener: (username: string) => void): void {
      overLimit = listener;
    },
  };
}
