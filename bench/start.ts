import { join } from "node:path";
import { buildExecutable } from "../scripts/build-executable.ts";
import { LIMITS, MAIN, temporaryFolder, WINDOWS } from "./environment.ts";
import { startPinned } from "./process.ts";
import type { Measurement } from "./report.ts";

/**
 * Time from the start of the process, with an empty data folder, until `/ready` answers: of the
 * executable, which images and packages contain, and of the sources.
 */
export async function start(): Promise<Measurement[]> {
  using folder = temporaryFolder();
  const executable = join(folder.path, "parley");
  await buildExecutable(executable);
  const common = { scenario: "start", unit: "ms", goal: 300 };
  return [
    { ...common, metric: "executable ready, empty folder", parley: await times(executable) },
    { ...common, metric: "sources ready, empty folder", parley: await times(MAIN) },
  ];
}

async function times(program: string): Promise<number[]> {
  const all: number[] = [];
  // The first start fills the caches of the system.
  for (let window = 0; window <= WINDOWS; window++) {
    using folder = temporaryFolder();
    const started = performance.now();
    await using server = await startPinned(program, {
      PARLEY_DATA: folder.path,
      PARLEY_LIMITS: LIMITS,
    });
    const { ok } = await fetch(`${server.url}/ready`);
    if (!ok) throw new Error("the server listens but is not ready");
    all.push(performance.now() - started);
  }
  return all.slice(1);
}
