import type { TestNode } from "@parley/testkit/cluster.ts";
import { explain } from "./checker.ts";
import { faultNames, faultOf } from "./faults.ts";
import { startLoad } from "./load.ts";
import { type Random, seededRandom } from "./random.ts";
import { createUsers, startAgentCluster } from "./users.ts";
import { type InjectedFault, verify } from "./verify.ts";

const PEOPLE = 10;
const CHATS = 4;
/** Shortest and longest duration of a fault, and of the pause after it. */
const FAULT_MS: [number, number] = [500, 20_000];
const PAUSE_MS: [number, number] = [500, 6000];

export interface SoakOptions {
  seconds: number;
  seed: number;
  print?(line: string): void;
}

/**
 * Ten clients make random calls while one fault after another is injected; then the history is
 * checked against the final state. Returns the violations.
 */
export async function soak({ seconds, seed, print = () => {} }: SoakOptions): Promise<string[]> {
  await using setup = await startAgentCluster();
  await using users = await createUsers(setup, { people: PEOPLE, chats: CHATS, seed });
  const { operations } = users.history;
  const load = startLoad(users, { pauseMs: 200 });
  const injected = await injectFaults(users.cluster, seededRandom(seed), seconds * 1000, (line) =>
    print(`${line}; ${load.acknowledged()} operations acknowledged so far`),
  );
  await users.cluster.ready();
  await load.stop();
  print(summary(operations));
  const violations = await verify(users, injected);
  return violations.map((violation) => explain(violation, operations));
}

/** Injects one random fault after another, each at a random node. */
async function injectFaults(
  cluster: Parameters<typeof verify>[0]["cluster"],
  random: Random,
  totalMs: number,
  print: (line: string) => void,
): Promise<InjectedFault[]> {
  const end = Date.now() + totalMs;
  const injected: InjectedFault[] = [];
  const left = () => Math.max(0, end - Date.now());
  while (left() > 0) {
    const fault = random.pick(faultNames) ?? "NATS stopped";
    const node = random.pick(cluster.nodes) as TestNode;
    const durationMs = Math.min(
      random.between(...FAULT_MS),
      Math.max(left(), FAULT_MS[0]),
      totalMs / 5,
    );
    const pauseMs = random.between(...PAUSE_MS);
    print(`${fault} (${node.name}) for ${Math.round(durationMs)} ms`);
    injected.push({ fault, node });
    await faultOf(fault).begin(cluster, node);
    await Bun.sleep(durationMs);
    await faultOf(fault).end(cluster, node);
    await cluster.ready();
    await Bun.sleep(Math.min(pauseMs, left()));
  }
  return injected;
}

function summary(operations: readonly { outcome: string }[]): string {
  const by = Map.groupBy(operations, ({ outcome }) => outcome);
  const figures = [...by].map(([outcome, some]) => `${some.length} ${outcome}`);
  return `${operations.length} operations: ${figures.join(", ")}`;
}

if (import.meta.main) {
  const [seconds = "600", given] = process.argv.slice(2);
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  print(`seed ${seed}`);
  const violations = await soak({ seconds: Number(seconds), seed, print });
  for (const each of violations) print(`\n${each}`);
  print(
    violations.length === 0 ? "no violations" : `\n${violations.length} violations, seed ${seed}`,
  );
  process.exit(violations.length === 0 ? 0 : 1);
}
