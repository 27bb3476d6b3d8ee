import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Job, nameOf } from "./suites.ts";

/** The costs of the last run that was saved, with `--save`. They order the next runs. */
const FILE = join(import.meta.dir, "costs.json");
const UNKNOWN_SECONDS = 5;

/** Seconds of CPU time and seconds that passed, by the name of the job. */
export type Costs = Record<string, { cpu: number; wall: number }>;

export const savedCosts = (): Costs =>
  existsSync(FILE) ? JSON.parse(readFileSync(FILE, "utf8")) : {};

export function saveCosts(costs: Costs): void {
  const sorted = Object.entries(costs).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const lines = sorted.map(([name, cost]) => `  ${JSON.stringify(name)}: ${JSON.stringify(cost)}`);
  writeFileSync(FILE, `{\n${lines.join(",\n")}\n}\n`);
}

/** How long a job takes by itself, from what the last saved run has measured. */
export function secondsOf(job: Job, costs: Costs): number {
  return costs[nameOf(job)]?.wall ?? UNKNOWN_SECONDS;
}
