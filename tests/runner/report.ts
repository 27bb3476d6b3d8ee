import { type Costs, costOf } from "./costs.ts";
import { nameOf } from "./job.ts";
import type { Outcome } from "./run.ts";

const LISTED = 10;

/** One line for a file, and what a failed one has printed. */
export function reportFile(outcome: Outcome, place: string): string {
  const { job, passed, failed, skipped, cpu, wall, output } = outcome;
  const counts = [
    `${passed} passed`,
    failed && `${failed} failed`,
    skipped && `${skipped} skipped`,
  ];
  const line = `${place} ${failed ? "FAIL" : "ok  "} ${nameOf(job)}: ${counts.filter(Boolean).join(", ")} (CPU ${cpu.toFixed(1)} s, ${wall.toFixed(1)} s)`;
  return failed ? `${output.trimEnd()}\n${line}` : line;
}

/**
 * The costliest files, the totals beside the last saved ones, the failed tests and those that failed only
 * the first time, and the counts.
 */
export function reportRun(
  outcomes: readonly Outcome[],
  unsteady: readonly string[],
  seconds: number,
  saved: Costs,
): string {
  const sum = (of: (outcome: Outcome) => number) =>
    outcomes.reduce((total, outcome) => total + of(outcome), 0);
  const before = outcomes.map(({ job }) => costOf(job, saved));
  const savedSum = (of: "cpu" | "wall") => before.reduce((total, cost) => total + cost[of], 0);
  const failures = outcomes.flatMap((outcome) => outcome.failures);
  const skipped = sum((outcome) => outcome.skipped);
  return [
    "",
    ...costliest("Most CPU time", outcomes, ({ cpu }) => cpu),
    // Time in which the file used no core: it waited, or the machine was busy.
    ...costliest("Most waiting", outcomes, ({ cpu, wall }) => Math.max(0, wall - cpu)),
    `In all ${sum(({ cpu }) => cpu).toFixed(0)} s of CPU time and ${sum(({ wall }) => wall).toFixed(0)} s in ${outcomes.length} files; the saved run: ${savedSum("cpu").toFixed(0)} s and ${savedSum("wall").toFixed(0)} s.`,
    `${sum(({ assertions }) => assertions)} assertions. The run took ${minutes(seconds)}.`,
    "",
    ...failures.map((name) => `(fail) ${name}`),
    ...unsteady.map((name) => `(failed once, then passed) ${name}`),
    `${sum(({ passed }) => passed)} passed, ${failures.length} failed${skipped ? `, ${skipped} skipped` : ""}`,
  ].join("\n");
}

function costliest(
  title: string,
  outcomes: readonly Outcome[],
  of: (outcome: Outcome) => number,
): string[] {
  const sorted = outcomes.toSorted((one, other) => of(other) - of(one)).slice(0, LISTED);
  return [
    `${title}:`,
    ...sorted.map((each) => `  ${of(each).toFixed(1).padStart(6)} s  ${nameOf(each.job)}`),
  ];
}

const minutes = (seconds: number) =>
  `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
