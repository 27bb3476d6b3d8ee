import { z } from "zod";
import { alone, type Cluster } from "./cluster.ts";

/** How many sockets each account has, on which nodes. */
export interface Sockets {
  /** A socket of the account has opened or closed here: so many are left, this the newest. */
  count(username: string, here: number, newest: string): void;
  elsewhere(username: string): number;
  /** Told when the last socket that was elsewhere has gone. */
  onNoneElsewhere(listener: (username: string) => void): void;
  /** Told when there are too many in all, and the newest of them is here. */
  onCrowded(listener: (username: string) => void): void;
}

/** Ids of sockets sort by their age. */
const Count = z.tuple([
  z.string().describe("username"),
  z.int().nonnegative().describe("how many"),
  z.string().describe("the newest's id"),
]);
type Count = z.infer<typeof Count>;

interface Held {
  count: number;
  newest: string;
}

/** One node: what is here is all there is. */
const onlyHere: Sockets = {
  count: () => {},
  elsewhere: () => 0,
  onNoneElsewhere: () => {},
  onCrowded: () => {},
};

/**
 * The limit is checked before a socket opens, here and elsewhere counted together. Two nodes may let
 * the last one in at the same moment; then the node that has the newer of them closes it.
 */
export function sockets(cluster: Cluster, limit: number): Sockets {
  if (cluster === alone) return onlyHere;
  const here = new Map<string, Held>();
  const nodes = new Map<string, Map<string, Held>>();
  const changed = new Set<string>();
  let emptied: (username: string) => void = () => {};
  let crowded: (username: string) => void = () => {};

  const tell = cluster.share<Count[]>({
    name: "sockets",
    schema: z.array(Count),
    receive: (counts, node) => {
      for (const count of counts) put(node, count);
    },
    state: () => [...here].map(([username, { count, newest }]) => [[username, count, newest]]),
    replace(items, node) {
      const counts = items.flat();
      const named = new Set(counts.map(([username]) => username));
      for (const username of nodes.get(node)?.keys() ?? []) {
        if (!named.has(username)) put(node, [username, 0, ""]);
      }
      for (const count of counts) put(node, count);
    },
    forget(node) {
      for (const username of nodes.get(node)?.keys() ?? []) put(node, [username, 0, ""]);
      nodes.delete(node);
    },
  });

  function put(node: string, [username, count, newest]: Count): void {
    const theirs = nodes.get(node) ?? new Map<string, Held>();
    nodes.set(node, theirs);
    if (count > 0) theirs.set(username, { count, newest });
    else if (theirs.delete(username) && elsewhere(username) === 0) emptied(username);
    judge(username);
  }

  const held = (username: string) =>
    [...nodes.values()].flatMap((theirs) => theirs.get(username) ?? []);

  function elsewhere(username: string): number {
    let sum = 0;
    for (const theirs of nodes.values()) sum += theirs.get(username)?.count ?? 0;
    return sum;
  }

  function judge(username: string): void {
    const own = here.get(username);
    if (!own || own.count + elsewhere(username) <= limit) return;
    if (held(username).every(({ newest }) => newest < own.newest)) crowded(username);
  }

  /** What changes in the same turn is told together. */
  function tellSoon(username: string): void {
    changed.add(username);
    if (changed.size > 1) return;
    setImmediate(() => {
      const counts = [...changed].map((each): Count => {
        const { count, newest } = here.get(each) ?? { count: 0, newest: "" };
        return [each, count, newest];
      });
      changed.clear();
      tell(counts);
    });
  }

  return {
    count(username, count, newest) {
      if (count > 0) here.set(username, { count, newest });
      else here.delete(username);
      tellSoon(username);
      judge(username);
    },
    elsewhere,
    onNoneElsewhere: (listener) => {
      emptied = listener;
    },
    onCrowded: (listener) => {
      crowded = listener;
    },
  };
}
