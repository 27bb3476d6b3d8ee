import { join } from "node:path";
import { measureCpu } from "./cpu.ts";
import { ROOT } from "./files.ts";
import { type Job, nameOf } from "./suites.ts";

/** A file that takes longer hangs. */
const HANG_MS = 30 * 60_000;
/** For tests that hang by themselves: no test is judged by its time. */
const TEST_TIMEOUT_MS = 300_000;

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
  const files = [job.file, ...(job.more ?? [])].map((file) => join(ROOT, file));
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
  const failures = [...stderr.matchAll(/^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/gm)].map(
    ([, name = ""]) => name,
  );
  if (code !== 0 && failures.length === 0) failures.push(`the process ended with ${code}`);
  return {
    job,
    passed: count("pass"),
    failed: failures.length,
    skipped: count("skip"),
    assertions: count("expect\\(\\) calls"),
    failures: failures.map((name) => `${nameOf(job)}: ${name}`),
    cpu: Math.max(cpu(), Number(own) / 1000),
    wall: (performance.now() - startedAt) / 1000,
    output: stdout + stderr,
  };
}
