import { z } from "zod";
import type { Cluster } from "../changes/cluster.ts";

const Report = z.object({
  running: z.int().nonnegative(),
  /** How many turns other nodes are asked to claim, by their ids. */
  claim: z.record(z.string(), z.int().positive()),
});
type Report = z.infer<typeof Report>;

/** How many turns each node runs, so that turns spread over the nodes. */
export class TurnLoads {
  readonly #node: string;
  readonly #send: (report: Report) => void;
  #here = 0;
  /** The last report of each other node, and what it was asked to claim since. */
  readonly #others = new Map<string, number>();
  #isReportDue = false;
  #listener: (count: number) => void = () => {};

  constructor(cluster: Cluster) {
    this.#node = cluster.node;
    this.#send = cluster.share({
      name: "turns",
      schema: Report,
      receive: (report, node) => this.#receive(report, node),
      state: () => [{ running: this.#here, claim: {} }],
      replace: (reports, node) => {
        for (const report of reports) this.#receive(report, node);
      },
      nodeGone: (node) => this.#others.delete(node),
    });
  }

  /**
   * Tells the other nodes how many turns this node runs. Turns that begin or end in the same iteration
   * of the event loop are reported together.
   */
  report(running: number): void {
    this.#here = running;
    if (this.#isReportDue) return;
    this.#isReportDue = true;
    setImmediate(() => {
      this.#isReportDue = false;
      this.#send({ running: this.#here, claim: {} });
    });
  }

  /** How many of the turns that wait this node may claim without running more than the average. */
  share(waiting: number): number {
    const all = [this.#here, waiting, ...this.#others.values()].reduce((sum, each) => sum + each);
    const most = Math.ceil(all / (1 + this.#others.size));
    return Math.min(waiting, Math.max(0, most - this.#here));
  }

  /** Asks the nodes that run the fewest turns to claim so many. They may be gone and claim none. */
  handOver(count: number): void {
    const claim: Record<string, number> = {};
    for (let left = count; left > 0; left--) {
      const [least] = [...this.#others].toSorted(([, one], [, other]) => one - other);
      if (!least) return;
      const [node, running] = least;
      this.#others.set(node, running + 1);
      claim[node] = (claim[node] ?? 0) + 1;
    }
    this.#send({ running: this.#here, claim });
  }

  /** Set once: called when another node asks this one to claim so many turns. */
  onHandOver(listener: (count: number) => void): void {
    this.#listener = listener;
  }

  #receive({ running, claim }: Report, node: string): void {
    this.#others.set(node, running);
    const count = claim[this.#node];
    if (count !== undefined) this.#listener(count);
  }
}
