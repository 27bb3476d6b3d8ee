#!/usr/bin/env bun
/**
 * Plants faults one at a time in a copy of the sources, and reports which tests find each:
 * `bun tests/planted-faults/main.ts [part of a name or file] …`. Fails unless each fault is found in
 * every test file that must find it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suiteOf } from "../runner/suites.ts";
import { type Copy, copySources } from "./copy.ts";
import { type Fault, planted } from "./fault.ts";
import { faults } from "./faults/index.ts";
import { runTests } from "./run-tests.ts";

interface Result {
  readonly found: boolean;
  readonly text: string;
}

/** On a busy machine a test may fail by chance before the one that finds the fault. */
const MAX_ATTEMPTS = 3;

const stopped = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => stopped.abort(new Error(`ended by ${signal}`)));
}
process.exitCode = await main(process.argv.slice(2)).catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  return 1;
});

async function main(parts: readonly string[]): Promise<number> {
  const isChosen = ({ name, file }: Fault) =>
    parts.length === 0 || parts.some((part) => name.includes(part) || file.includes(part));
  const chosen = faults.filter(isChosen);
  if (chosen.length === 0) throw new Error("no fault has such a name or file");
  using changed = copySources();
  using unchanged = copySources();
  print(["fault", "found by", "command", "seconds"]);
  print(["---", "---", "---", "---"]);
  let missed = 0;
  for (const fault of chosen) {
    for (const file of fault.tests) {
      const startedAt = performance.now();
      const { found, text } = await tryFault(fault, file, changed, unchanged);
      if (!found) missed++;
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
      print([fault.name, `${file}: ${text}`, suiteOf(file), seconds]);
    }
  }
  const outcome = missed === 0 ? "each was found" : `${missed} test files did not find theirs`;
  process.stdout.write(`\n${chosen.length} faults: ${outcome}.\n`);
  return missed === 0 ? 0 : 1;
}

/** Plants a fault and runs a test file that must find it. */
async function tryFault(
  fault: Fault,
  file: string,
  changed: Copy,
  unchanged: Copy,
): Promise<Result> {
  const path = join(changed.root, fault.file);
  const source = readFileSync(path, "utf8");
  writeFileSync(path, planted(source, fault));
  try {
    return await findFault(file, changed, unchanged);
  } finally {
    writeFileSync(path, source);
  }
}

/** A test that fails finds the fault if it fails again, and passes without the fault. */
async function findFault(file: string, changed: Copy, unchanged: Copy): Promise<Result> {
  const { signal } = stopped;
  let text = "";
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const outcome = await runTests(changed, file, signal);
    if (outcome.kind === "passed") return { found: false, text: "NOT FOUND" };
    if (outcome.kind === "broken") {
      return { found: false, text: `NOT RUN: ${outcome.output.slice(-500)}` };
    }
    const { test, timedOut } = outcome;
    text = `${test ?? "the whole file"}${timedOut ? " (timed out)" : ""}`;
    const again = await runTests(changed, file, signal, test);
    const without = await runTests(unchanged, file, signal, test);
    if (again.kind === "failed" && without.kind === "passed") return { found: true, text };
  }
  return { found: false, text: `NOT FOUND: ${text} does not depend on the fault` };
}

function print(cells: readonly string[]): void {
  const lines = cells.map((cell) => cell.replaceAll(/\s+/g, " "));
  process.stdout.write(`| ${lines.join(" | ")} |\n`);
}
