import { closeSync, openSync } from "node:fs";
import { open } from "node:fs/promises";

/** More tasks than the pool has threads. */
const POOL_TASKS = 256;

/**
 * Blocks all threads of the runtime's pool until it is disposed. Opening a pipe blocks a thread until
 * the other end is opened. `pipe` is a path at which nothing exists.
 */
export function blockThreadPool(pipe: string): AsyncDisposable {
  Bun.spawnSync(["mkfifo", pipe]);
  const opening = Array.from({ length: POOL_TASKS }, () => open(pipe, "r"));
  return {
    [Symbol.asyncDispose]: async () => {
      const otherEnd = openSync(pipe, "r+");
      for (const file of opening) await (await file).close();
      closeSync(otherEnd);
    },
  };
}
