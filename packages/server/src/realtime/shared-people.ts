import { z } from "zod";
import { alone, type Cluster } from "../changes/cluster.ts";

/** A username, and whether something holds of the person on the node that says so. */
const Told = z.tuple([z.string(), z.boolean()]);
type Told = z.infer<typeof Told>;

/** The people of whom something holds on this node. */
export interface PeopleHere {
  has(username: string): boolean;
  all(): Iterable<string>;
}

/**
 * The people of whom something holds on any node. Calls `changed` when that begins or ends; `isOurs`: on
 * this node, or with another node that is gone, so that no other one reports it.
 */
export function sharePeople(
  cluster: Cluster,
  name: string,
  here: PeopleHere,
  changed: (username: string, isOurs: boolean) => void,
) {
  /** By node. */
  const others = new Map<string, Set<string>>();
  /** People of whom it has begun or ended here since that was sent. */
  const unsent = new Set<string>();

  const send = cluster.share<Told[]>({
    name,
    schema: z.array(Told),
    receive: (people, node) => people.forEach((told) => void update(node, told)),
    state: () => [...here.all()].map((username) => [[username, true]]),
    replace: (items, node) => replace(node, items.flat()),
    nodeGone: (node) => replace(node, [], true),
  });

  const isElsewhere = (username: string) => others.values().some((people) => people.has(username));

  function update(node: string, [username, holds]: Told, isOurs = false): void {
    const before = isElsewhere(username);
    const people = others.get(node) ?? new Set();
    if (holds) others.set(node, people.add(username));
    else people.delete(username);
    if (people.size === 0) others.delete(node);
    if (isElsewhere(username) !== before && !here.has(username)) changed(username, isOurs);
  }

  function replace(node: string, people: readonly Told[], isLost = false): void {
    const listed = new Set(people.map(([username]) => username));
    for (const username of [...(others.get(node) ?? [])]) {
      if (!listed.has(username)) update(node, [username, false], isLost);
    }
    for (const told of people) update(node, told);
  }

  /** What changes in the same iteration of the event loop is sent in one message. */
  function sendSoon(username: string): void {
    if (cluster === alone) return;
    unsent.add(username);
    if (unsent.size > 1) return;
    setImmediate(() => {
      const people = [...unsent].map((each): Told => [each, here.has(each)]);
      unsent.clear();
      send(people);
    });
  }

  return {
    has: (username: string) => here.has(username) || isElsewhere(username),
    /** It has begun or ended on this node. */
    changedHere(username: string): void {
      sendSoon(username);
      if (!isElsewhere(username)) changed(username, true);
    },
  };
}
