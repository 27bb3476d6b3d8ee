import { join } from "node:path";
import { ROOT } from "./files.ts";
import { filesOf, type Job, nameOf } from "./job.ts";
import { measureCpu } from "./processes.ts";

/** A file that takes longer hangs. */
const HANG_MS = 30 * 60_000;
/** For tests that hang by themselves: no test is judged by its time. */
const TEST_TIMEOUT_MS = 600_000;

export interface Outcome {
  job: Job;
  passed: number;
  failed: number;
  skipped: number;
  assertions: number;
  /** Names of the failed tests. */
  failures: string[];
  /** Seconds. */
  cpu: number;
  wall: number;
  output: string;
}

/** Runs the jobs in this order, as many at a time as given, each in a process of its own. */
export async function runJobs(
  jobs: readonly Job[],
  width: number,
  env: (job: Job) => Record<string, string>,
  ended: (outcome: Outcome) => void,
): Promise<void> {
  const waiting = jobs.values();
  const work = async () => {
    for (const job of waiting) ended(await runJob(job, env(job)));
  };
  await Promise.all(Array.from({ length: width }, work));
}

async function runJob(job: Job, env: Record<string, string>): Promise<Outcome> {
  const startedAt = performance.now();
  const files = filesOf(job).map((file) => join(ROOT, file));
  const child = Bun.spawn([process.execPath, "test", "--timeout", `${TEST_TIMEOUT_MS}`, ...files], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const cpu = measureCpu(child.pid);
  const hang = setTimeout(() => child.kill("SIGKILL"), HANG_MS);
  const [stdout, stderr, code] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  clearTimeout(hang);
  const own = (child.resourceUsage()?.cpuTime.total ?? 0n) / 1000n;
  const count = (what: string) =>
    Number(new RegExp(`^ *(\\d+) ${what}`, "m").exec(stderr)?.[1] ?? 0);
  const failures = failuresIn(stderr, job);
  if (code !== 0 && failures.length === 0) {
    failures.push(`${nameOf(job)}: the process ended with ${code}`);
  }
  return {
    job,
    passed: count("pass"),
    failed: failures.length,
    skipped: count("skip"),
    assertions: count("expect\\(\\) calls"),
    failures,
    cpu: Math.max(cpu(), Number(own) / 1000),
    wall: (performance.now() - startedAt) / 1000,
    output: stdout + stderr,
  };
}

/** The names of the failed tests, each with that of its file, which a line before it names. */
function failuresIn(output: string, job: Job): string[] {
  let file = job.file;
  const failures: string[] = [];
  for (const line of output.split("\n")) {
    // What follows repeats them.
    if (/^\d+ tests failed:$/.test(line)) break;
    file = /^(\S+\.test\.ts):$/.exec(line)?.[1] ?? file;
    const [, name] = /^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/.exec(line) ?? [];
    if (name) failures.push(`${nameOf({ ...job, file, more: [] })}: ${name}`);
  }
  return failures;
}
