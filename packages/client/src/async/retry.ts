import type { Reachability } from "../connection/connectivity.ts";
import { isCallError, isTransient } from "../errors.ts";

const TRIES = 6;
const SHORTEST_MS = 500;
const LONGEST_MS = 4000;

/** How long to wait before the next try, as the service says or longer each time. */
export const pauseBefore = (tries: number, error: unknown): number =>
  ((isCallError(error) && error.retryAfter) || 0) * 1000 ||
  Math.min(LONGEST_MS, SHORTEST_MS * 2 ** tries);

/** Resolves after the time, or when the signal is aborted. */
export const pause = (ms: number, signal?: AbortSignal) =>
  new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });

/** Doubles from attempt to attempt, and differs from client to client so that they do not come back all at once. */
export const backoffMs = (failures: number, { min, max }: { min: number; max: number }): number =>
  min + Math.random() * (Math.min(max, min * 2 ** failures) - min);

/** Makes a call that may be made again until it is answered: lost connections are waited out. */
export async function untilAnswered<Result>(
  { canCall, whenReachable }: Reachability,
  call: () => Promise<Result>,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    await whenReachable();
    try {
      return await call();
    } catch (error) {
      if (!isTransient(error) || tries >= TRIES) throw error;
      if (canCall()) await pause(pauseBefore(tries - 1, error));
    }
  }
}

/** Runs tasks of one key one after another, those of different keys side by side. */
export function lanes(): <Result>(key: string, task: () => Promise<Result>) => Promise<Result> {
  const last = new Map<string, Promise<unknown>>();
  return (key, task) => {
    const run = (last.get(key) ?? Promise.resolve()).then(task, task);
    last.set(key, run);
    const done = () => {
      if (last.get(key) === run) last.delete(key);
    };
    run.then(done, done);
    return run;
  };
}
