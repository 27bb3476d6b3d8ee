import { untilAborted } from "./abort.ts";

/** Runs at most `max` tasks at a time; further ones wait in order, unless their signal is aborted. */
export function createLimit(
  max: number,
): <Result>(task: () => Promise<Result>, signal: AbortSignal) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let running = 0;
  const release = () => {
    running--;
    waiting.shift()?.();
  };
  return async (task, signal) => {
    while (running >= max) {
      let start = () => {};
      const turn = new Promise<void>((resolve) => {
        start = resolve;
      });
      waiting.push(start);
      await untilAborted(turn, signal).catch((reason) => {
        const place = waiting.indexOf(start);
        // If it was this task's turn already, the next one gets it.
        if (place === -1) waiting.shift()?.();
        else waiting.splice(place, 1);
        throw reason;
      });
    }
    running++;
    return task().finally(release);
  };
}
