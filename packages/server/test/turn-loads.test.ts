import { expect, test } from "bun:test";
import { createTurnLoads } from "../src/agents/turn-loads.ts";
import { alone, type Cluster } from "../src/changes/cluster.ts";

/** Nodes that receive at once what the others send. */
function nodes(...names: string[]) {
  const receivers = new Map<string, (item: unknown, from: string) => void>();
  const loads = names.map((node) => {
    const cluster: Cluster = {
      ...alone,
      node,
      share(shared) {
        receivers.set(node, (item, from) => shared.receive(shared.schema.parse(item), from));
        return (item) => {
          for (const [to, receive] of receivers) if (to !== node) receive(item, node);
        };
      },
    };
    return createTurnLoads(cluster);
  });
  return { loads, reported: () => new Promise((resolve) => setImmediate(resolve)) };
}

test("a single node may claim all turns that wait", () => {
  const loads = createTurnLoads(alone);
  loads.report(1000);
  expect(loads.share(100)).toBe(100);
});

test("a node may claim turns until it runs as many as the average of all nodes, rounded up", async () => {
  const { loads, reported } = nodes("one", "two", "three");
  const [one, two, three] = loads;
  one?.report(0);
  two?.report(1);
  three?.report(5);
  await reported();
  expect(loads.map((each) => each.share(4))).toEqual([4, 3, 0]);
  expect(one?.share(1)).toBe(1);
});

test("turns are handed over to the nodes that run the fewest", async () => {
  const { loads, reported } = nodes("one", "two", "three");
  const claimed = loads.map((each) => {
    const counts: number[] = [];
    each.onHandOver((count) => counts.push(count));
    return counts;
  });
  const [one, two, three] = loads;
  one?.report(4);
  two?.report(3);
  three?.report(1);
  await reported();
  one?.handOver(4);
  expect(claimed).toEqual([[], [1], [3]]);
  one?.handOver(2);
  expect(claimed).toEqual([[], [1, 1], [3, 1]]);
});
