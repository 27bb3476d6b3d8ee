import type { TestNode } from "@parley/testkit/cluster.ts";
import { explain } from "./checker.ts";
import { gatherCrew, startScene } from "./crew.ts";
import { faultNames, faultOf } from "./faults.ts";
import { startLoad } from "./load.ts";
import { type Chances, chances } from "./random.ts";
import { type Happened, verify } from "./verify.ts";

const PEOPLE = 10;
const CHATS = 4;
/** How long a fault lasts, and how long nothing happens after it, in milliseconds. */
const HELD: [number, number] = [500, 20_000];
const CALM: [number, number] = [500, 6000];

export interface SoakOptions {
  seconds: number;
  seed: number;
  print?(line: string): void;
}

/**
 * Ten clients do what people do while one thing after another goes wrong, and what became of it all
 * is checked. Returns what is wrong, in words.
 */
export async function soak({ seconds, seed, print = () => {} }: SoakOptions): Promise<string[]> {
  await using scene = await startScene();
  await using crew = await gatherCrew(scene, { people: PEOPLE, chats: CHATS, seed });
  const { operations } = crew.history;
  const load = startLoad(crew, { pauseMs: 200 });
  const happened = await trouble(crew.cluster, chances(seed), seconds * 1000, (line) =>
    print(`${line}; ${load.acknowledged()} operations were acknowledged so far`),
  );
  await crew.cluster.ready();
  await load.stop();
  print(summary(operations));
  const violations = await verify(crew, happened);
  return violations.map((violation) => explain(violation, operations));
}

/** One fault after another, each of them somewhere. */
async function trouble(
  cluster: Parameters<typeof verify>[0]["cluster"],
  luck: Chances,
  totalMs: number,
  print: (line: string) => void,
): Promise<Happened[]> {
  const end = Date.now() + totalMs;
  const happened: Happened[] = [];
  const left = () => Math.max(0, end - Date.now());
  while (left() > 0) {
    const fault = luck.pick(faultNames) ?? "NATS stopped";
    const node = luck.pick(cluster.nodes) as TestNode;
    const heldMs = Math.min(luck.between(...HELD), Math.max(left(), HELD[0]), totalMs / 5);
    const calmMs = luck.between(...CALM);
    print(`${fault} (${node.name}) for ${Math.round(heldMs)} ms`);
    happened.push({ fault, node });
    await faultOf(fault).begin(cluster, node);
    await Bun.sleep(heldMs);
    await faultOf(fault).end(cluster, node);
    await cluster.ready();
    await Bun.sleep(Math.min(calmMs, left()));
  }
  return happened;
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
  const wrong = await soak({ seconds: Number(seconds), seed, print });
  for (const each of wrong) print(`\n${each}`);
  print(wrong.length === 0 ? "nothing is wrong" : `\n${wrong.length} violations, seed ${seed}`);
  process.exit(wrong.length === 0 ? 0 : 1);
}
