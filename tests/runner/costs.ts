import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { filesOf, type Job, nameOf } from "./job.ts";

/** The costs of the last run that was saved, with `--save`. They order the next runs. */
const FILE = join(import.meta.dir, "costs.json");
const UNKNOWN: Cost = { cpu: 0, wall: 5 };

/** Seconds of CPU time, and seconds that passed. */
interface Cost {
  cpu: number;
  wall: number;
}

/** By the name of a job of one file. */
export type Costs = Record<string, Cost>;

export const savedCosts = (): Costs =>
  existsSync(FILE) ? JSON.parse(readFileSync(FILE, "utf8")) : {};

export function saveCosts(costs: Costs): void {
  const sorted = Object.entries(costs).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const lines = sorted.map(([name, cost]) => `  ${JSON.stringify(name)}: ${JSON.stringify(cost)}`);
  writeFileSync(FILE, `{\n${lines.join(",\n")}\n}\n`);
}

/** What a job takes by itself, from what the last saved run has measured of its files. */
export function costOf(job: Job, costs: Costs): Cost {
  const known = job.variant
    ? [costs[nameOf(job)] ?? UNKNOWN]
    : filesOf(job).map((file) => costs[file] ?? UNKNOWN);
  return known.reduce((one, other) => ({ cpu: one.cpu + other.cpu, wall: one.wall + other.wall }));
}
