import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const MAIN = new URL("../packages/server/src/main.ts", import.meta.url).pathname;
export const FLOOR = new URL("./floor.ts", import.meta.url).pathname;

/** Rates are lifted: what is measured is what the server can do, not what it allows. */
export const LIMITS = JSON.stringify({
  messages_per_second: 0,
  signups_per_hour: 0,
  operations_per_second: 0,
  sockets_per_user: 1000,
});

/** Windows of measuring per scenario; the floor and Parley take turns. */
export const WINDOWS = Number(process.env.BENCH_WINDOWS ?? 5);

/** A folder for data that is removed at the end, on the disk that is to be measured. */
export function temporaryFolder(): { path: string } & Disposable {
  const path = mkdtempSync(join(process.env.BENCH_DATA ?? tmpdir(), "parley-bench-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

export const print = (line = "") => process.stdout.write(`${line}\n`);

export const range = (count: number): number[] =>
  Array.from({ length: count }, (_, index) => index);
