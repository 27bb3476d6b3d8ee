import { afterAll, beforeAll, expect, test } from "bun:test";
import type { TestNode } from "@parley/testkit/cluster.ts";
import { explain } from "./checker.ts";
import { type FaultName, faultOf } from "./faults.ts";
import { type Load, startLoad } from "./load.ts";
import { type AgentCluster, createUsers, startAgentCluster } from "./users.ts";
import { verify } from "./verify.ts";

/** Operations that are acknowledged before a fault, and again after it. */
const OPERATIONS = 60;

let setup: AgentCluster;
beforeAll(async () => {
  setup = await startAgentCluster();
});
afterAll(() => setup[Symbol.asyncDispose]());

async function waitForOperations(load: Load): Promise<void> {
  const enough = load.acknowledged() + OPERATIONS;
  while (load.acknowledged() < enough) await Bun.sleep(20);
}

/**
 * Runs the load before, during and after the faults, each at another node, and verifies the final
 * state.
 */
async function runWithFaults(names: readonly FaultName[], durationMs: number): Promise<void> {
  const { cluster } = setup;
  const injected = names.map((fault, place) => ({
    fault,
    node: cluster.nodes[place] as TestNode,
  }));
  const seed = Math.floor(Math.random() * 1e6);
  await using users = await createUsers(setup, { people: 6, chats: 3, seed });
  const load = startLoad(users, { pauseMs: 100, without: ["start", "membership"] });
  await waitForOperations(load);
  for (const { fault, node } of injected) await faultOf(fault).begin(cluster, node);
  await Bun.sleep(durationMs);
  for (const { fault, node } of injected) await faultOf(fault).end(cluster, node);
  await cluster.ready();
  await waitForOperations(load);
  const undelivered = await load.stop();
  const violations = await verify(users, injected);
  const { operations } = users.history;
  expect(violations.map((violation) => explain(violation, operations)).join("\n\n")).toBe("");
  expect(undelivered).toEqual([]);
}

const cases: [FaultName[], number][] = [
  [["kill -9 of a node"], 8000],
  [["NATS stopped"], 5000],
  [["PostgreSQL stopped"], 5000],
  [["a paused node"], 20_000],
  // Longer than the timeout after which a node notices that NATS does not answer.
  [["a silent link between a node and NATS", "a cut link between a node and NATS"], 12_000],
];
for (const [names, durationMs] of cases) {
  test(`${names.join(", ")}: nothing is lost or repeated, and every client ends with the right state`, async () => {
    await runWithFaults(names, durationMs);
  });
}
