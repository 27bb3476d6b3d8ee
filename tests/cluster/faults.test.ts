import { afterAll, beforeAll, expect, test } from "bun:test";
import type { TestNode } from "@parley/testkit/cluster.ts";
import { explain } from "./checker.ts";
import { gatherCrew, startScene, type TestScene } from "./crew.ts";
import { type FaultName, faultOf } from "./faults.ts";
import { type Load, startLoad } from "./load.ts";
import { verify } from "./verify.ts";

/** Operations that are answered before a fault, and again after it. */
const OPERATIONS = 60;

let scene: TestScene;
beforeAll(async () => {
  scene = await startScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

async function moreDone(load: Load): Promise<void> {
  const enough = load.acknowledged() + OPERATIONS;
  while (load.acknowledged() < enough) await Bun.sleep(20);
}

/**
 * People and agents go on before, during and after the faults, each of which befalls another node;
 * then everything is looked at.
 */
async function endure(names: readonly FaultName[], holdMs: number): Promise<void> {
  const { cluster } = scene;
  const happened = names.map((fault, place) => ({
    fault,
    node: cluster.nodes[place] as TestNode,
  }));
  const seed = Math.floor(Math.random() * 1e6);
  await using crew = await gatherCrew(scene, { people: 6, chats: 3, seed });
  const load = startLoad(crew, { pauseMs: 100, without: ["start", "seat"] });
  await moreDone(load);
  for (const { fault, node } of happened) await faultOf(fault).begin(cluster, node);
  await Bun.sleep(holdMs);
  for (const { fault, node } of happened) await faultOf(fault).end(cluster, node);
  await cluster.ready();
  await moreDone(load);
  const undelivered = await load.stop();
  const violations = await verify(crew, happened);
  const { operations } = crew.history;
  expect(violations.map((violation) => explain(violation, operations)).join("\n\n")).toBe("");
  expect(undelivered).toEqual([]);
}

const endured: [FaultName[], number][] = [
  [["kill -9 of a node"], 8000],
  [["NATS stopped"], 5000],
  [["PostgreSQL stopped"], 5000],
  [["a node that stands still"], 20_000],
  // Long enough for a node to notice that nobody answers.
  [["a silent link between a node and NATS", "a cut link between a node and NATS"], 12_000],
];
for (const [names, holdMs] of endured) {
  test(`${names.join(", ")}: nothing is lost or repeated, and every client is right`, async () => {
    await endure(names, holdMs);
  });
}
