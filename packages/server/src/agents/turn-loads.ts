import { z } from "zod";
import type { Cluster } from "../changes/cluster.ts";

const Report = z.object({
  running: z.int().nonnegative(),
  /** How many turns other nodes are asked to claim, by their ids. */
  claim: z.record(z.string(), z.int().positive()),
});

export type TurnLoads = ReturnType<typeof createTurnLoads>;

/** How many turns each node runs, so that turns spread over the nodes. */
export function createTurnLoads(cluster: Cluster) {
  let here = 0;
  /** The last report of each other node, and what it was asked to claim since. */
  const others = new Map<string, number>();
  let isReportDue = false;
  let listener: (count: number) => void = () => {};

  const send = cluster.share({
    name: "turns",
    schema: Report,
    receive,
    state: () => [{ running: here, claim: {} }],
    replace: (reports, node) => {
      for (const report of reports) receive(report, node);
    },
    nodeGone: (node) => others.delete(node),
  });

  function receive({ running, claim }: z.infer<typeof Report>, node: string): void {
    others.set(node, running);
    const count = claim[cluster.node];
    if (count !== undefined) listener(count);
  }

  return {
    /** Tells the other nodes how many turns run here, once per iteration of the event loop. */
    report(running: number): void {
      here = running;
      if (isReportDue) return;
      isReportDue = true;
      setImmediate(() => {
        isReportDue = false;
        send({ running: here, claim: {} });
      });
    },
    /** How many of the turns that wait this node may claim without running more than the average. */
    share(waiting: number): number {
      const all = [here, waiting, ...others.values()].reduce((sum, each) => sum + each);
      const most = Math.ceil(all / (1 + others.size));
      return Math.min(waiting, Math.max(0, most - here));
    },
    /** Asks the nodes that run the fewest turns to claim so many. They may be gone and claim none. */
    handOver(count: number): void {
      const claim: Record<string, number> = {};
      for (let left = count; left > 0; left--) {
        const [least] = [...others].toSorted(([, one], [, other]) => one - other);
        if (!least) return;
        const [node, running] = least;
        others.set(node, running + 1);
        claim[node] = (claim[node] ?? 0) + 1;
      }
      send({ running: here, claim });
    },
    /** Set once: called when another node asks this one to claim so many turns. */
    onHandOver(listen: (count: number) => void): void {
      listener = listen;
    },
  };
}
