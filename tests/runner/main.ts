/**
 * Runs tests: `bun tests/runner/main.ts [unit | test | all | changed] [words of paths …]`. The words
 * choose the files whose path contains one of them. `--save` stores what each file costs, `--since=<commit>`
 * is what `changed` compares with, and `--again` runs the files that failed a second time, alone.
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { changedFiles, jobsFor } from "./changed.ts";
import { costOf, saveCosts, savedCosts } from "./costs.ts";
import { type Job, nameOf } from "./job.ts";
import { prepareNeeds, startServices } from "./needs.ts";
import { descendantsOf } from "./processes.ts";
import { reportFile, reportRun } from "./report.ts";
import { type Outcome, runJobs } from "./run.ts";
import { jobsOf, suiteOf, together } from "./suites.ts";

/** When more files than this fail, it is not by chance. */
const MOST_AGAIN = 3;

const say = (line: string) => void process.stdout.write(`${line}\n`);
const { values, positionals } = parseArgs({
  args: process.argv.slice(2),
  options: {
    again: { type: "boolean" },
    save: { type: "boolean" },
    since: { type: "string" },
  },
  allowPositionals: true,
});
const [command = "test", ...words] = positionals;
const saved = savedCosts();
// What is saved is the cost of each file.
const chosen = chosenJobs();
const jobs = inOrder(values.save ? chosen : together(chosen, saved));
if (jobs.length === 0) {
  say("No test file is chosen.");
  process.exit(words.length > 0 ? 1 : 0);
}

// Servers and browsers of tests outlive them, if only this process is ended.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    const pids = descendantsOf(process.pid).map(String);
    Bun.spawnSync(["kill", ...pids], { stderr: "ignore" });
    process.exit(1);
  });
}

const startedAt = performance.now();
prepareNeeds(jobs, say);
let outcomes: Outcome[] = [];
const unsteady: string[] = [];
{
  await using services = await startServices(jobs);
  // Twice as many as there are cores, because tests also wait.
  await runJobs(jobs, 2 * availableParallelism(), services.env, (outcome) => {
    outcomes.push(outcome);
    say(reportFile(outcome, `[${outcomes.length}/${jobs.length}]`));
  });
  const failed = outcomes.filter((outcome) => outcome.failed > 0);
  if (values.again && failed.length <= MOST_AGAIN) {
    await runJobs(
      failed.map(({ job }) => job),
      1,
      services.env,
      (outcome) => {
        say(reportFile(outcome, "[again]"));
        const first = outcomes.find(({ job }) => job === outcome.job);
        if (outcome.failed === 0) unsteady.push(...(first?.failures ?? []));
        outcomes = outcomes.map((each) => (each === first ? outcome : each));
      },
    );
  }
}
say(reportRun(outcomes, unsteady, (performance.now() - startedAt) / 1000, saved));
if (values.save) save();
process.exit(outcomes.some(({ failed }) => failed > 0) ? 1 : 0);

function chosenJobs(): Job[] {
  if (command === "changed") return changedJobs();
  if (command !== "unit" && command !== "test" && command !== "all") {
    throw new Error(`unknown command «${command}»`);
  }
  const wanted = ({ file }: Job) => words.length === 0 || words.some((word) => file.includes(word));
  // Whoever names a file of a longer suite wants it.
  const named = command === "test" && words.length > 0 ? jobsOf("all") : jobsOf(command);
  return named.filter((job) => wanted(job) && (command === "all" || !job.variant));
}

function changedJobs(): Job[] {
  const since = values.since ?? "HEAD";
  const changed = changedFiles(since);
  const { jobs, left } = jobsFor(changed, saved);
  say(
    `${changed.length} files differ from ${since}: ${jobs.length} test files are the likeliest to notice.`,
  );
  if (left > 0) say(`${left} more may notice: \`npm test\` runs them.`);
  return jobs;
}

/** The longest first, so that no long one is left at the end; those of longer suites after the others. */
function inOrder(jobs: Job[]): Job[] {
  const isLong = ({ file, variant }: Job) => Number(Boolean(variant) || suiteOf(file) === "all");
  return jobs.toSorted(
    (one, other) =>
      isLong(one) - isLong(other) || costOf(other, saved).wall - costOf(one, saved).wall,
  );
}

function save(): void {
  const measured = outcomes.map(({ job, cpu, wall }) => [
    nameOf(job),
    { cpu: Number(cpu.toFixed(1)), wall: Number(wall.toFixed(1)) },
  ]);
  saveCosts({ ...saved, ...Object.fromEntries(measured) });
}
