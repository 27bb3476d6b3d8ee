import { basename } from "node:path";
import { type Costs, costOf } from "./costs.ts";
import { ROOT, reach, testFiles, textOf } from "./files.ts";
import type { Job } from "./job.ts";
import { suiteOf } from "./suites.ts";

/** What a run of `test:changed` may take, on an idle machine. */
const BUDGET_SECONDS = 100;

/** Files that differ from a commit, also those that git does not track yet. */
export function changedFiles(base: string): string[] {
  const git = (...args: string[]) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(["git", ...args], { cwd: ROOT });
    if (exitCode !== 0) throw new Error(`git ${args.join(" ")} failed: ${stderr}`);
    return stdout.toString().split("\n").filter(Boolean);
  };
  const tracked = git("diff", "--name-only", base);
  return [...tracked, ...git("ls-files", "--others", "--exclude-standard")];
}

/**
 * The tests that the changed files can break, the likeliest first, as far as the time suffices. A test
 * that imports a changed file comes earlier the shorter the way of imports is. Tests of a running program import
 * nothing of it: among these, the ones come first that speak most of what the changed file is called.
 */
export function jobsFor(changed: readonly string[], costs: Costs): { jobs: Job[]; left: number } {
  const ranked = testFiles()
    .map((file) => ({ job: { file }, rank: rankOf(file, changed) }))
    .filter(({ rank }) => rank > 0)
    .toSorted((one, other) => other.rank - one.rank)
    .map(({ job }) => job);
  const jobs: Job[] = [];
  let seconds = 0;
  for (const job of ranked) {
    seconds += costOf(job, costs).wall;
    if (jobs.length > 0 && seconds > BUDGET_SECONDS) break;
    jobs.push(job);
  }
  return { jobs, left: ranked.length - jobs.length };
}

/** How likely a change breaks the test, from 0 to 100. */
function rankOf(file: string, changed: readonly string[]): number {
  const distances = reach(file);
  const nearest = Math.min(
    ...changed.map((each) => distances.get(each) ?? Number.POSITIVE_INFINITY),
  );
  const byImports = 100 / (1 + nearest);
  if (suiteOf(file) !== "test") return byImports;
  return Math.max(byImports, ...changed.map((each) => rankByName(file, each)));
}

function rankByName(file: string, changed: string): number {
  const [name = ""] = basename(changed).split(".");
  const words = name.split(/-|(?<=[a-z])(?=[A-Z])/).map((word) => word.replace(/s$/, ""));
  if (!/^packages\/\w+\/src\//.test(changed)) return textOf(file).includes(changed) ? 50 : 0;
  if (name === "index") return 0;
  const pattern = new RegExp(words.join("[-_ ]?"), "gi");
  if (pattern.test(basename(file))) return 60;
  const count = textOf(file).match(pattern)?.length ?? 0;
  return (30 * count) / (10 + count);
}
