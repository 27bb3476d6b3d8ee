import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const MAIN = new URL("../packages/server/src/main.ts", import.meta.url).pathname;
export const FLOOR = new URL("./floor.ts", import.meta.url).pathname;

/** Lifts the rate limits, so that the benchmark measures the server and not its limits. */
export const LIMITS = JSON.stringify({
  messages_per_second: 0,
  signups_per_hour: 0,
  exports_per_hour: 0,
  hooks_per_hour: 0,
  operations_per_second: 0,
  service_operations_per_second: 0,
  sockets_per_user: 1000,
  uploads_at_once: 1000,
  upload_bytes_per_day: 0,
});

/** Measuring windows per scenario. Windows of the floor and of Parley alternate. */
export const WINDOWS = Number(process.env.BENCH_WINDOWS ?? 5);

/** A data folder on the disk to be measured; deleted on disposal. */
export function temporaryFolder(): { path: string } & Disposable {
  const path = mkdtempSync(join(process.env.BENCH_DATA ?? tmpdir(), "parley-bench-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

export const print = (line = "") => process.stdout.write(`${line}\n`);

export const range = (count: number): number[] =>
  Array.from({ length: count }, (_, index) => index);
