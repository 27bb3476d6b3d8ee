import { LIMITS, MAIN, temporaryFolder, WINDOWS } from "./environment.ts";
import { startPinned } from "./process.ts";
import type { Measurement } from "./report.ts";

/** Time from the start of the process, with an empty data folder, until `/ready` answers. */
export async function start(): Promise<Measurement[]> {
  const times: number[] = [];
  for (let window = 0; window <= WINDOWS; window++) {
    using folder = temporaryFolder();
    const started = performance.now();
    await using server = await startPinned(MAIN, {
      PARLEY_DATA: folder.path,
      PARLEY_LIMITS: LIMITS,
    });
    const { ok } = await fetch(`${server.url}/ready`);
    if (!ok) throw new Error("the server listens but is not ready");
    if (window > 0) times.push(performance.now() - started);
  }
  return [
    {
      scenario: "start",
      metric: "ready with an empty folder",
      unit: "ms",
      parley: times,
      goal: 300,
    },
  ];
}
