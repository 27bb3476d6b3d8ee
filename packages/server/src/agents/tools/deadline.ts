import { ANSWER_TOO_LATE, ContactFailed } from "./errors.ts";

/** A timeout whose clock can be stopped. */
export function pausableDeadline(milliseconds: number) {
  const { promise: ended, reject } = Promise.withResolvers<never>();
  // It may end while nobody waits for it.
  ended.catch(() => {});
  const end = () => reject(new ContactFailed(ANSWER_TOO_LATE));
  let left = milliseconds;
  let startedAt = performance.now();
  let timer = setTimeout(end, left);
  let isStopped = false;
  let pauses = 0;

  function restart(after: number): void {
    clearTimeout(timer);
    if (!isStopped) timer = setTimeout(end, after);
  }

  return {
    /** Rejects with a `ContactFailed`. */
    ended,
    /** Waits for something else, at most for a time, and stops the clock meanwhile. */
    async without<Result>(work: Promise<Result>, mostMs: number): Promise<Result> {
      if (pauses++ === 0) {
        left -= performance.now() - startedAt;
        restart(mostMs);
      }
      try {
        return await work;
      } finally {
        if (--pauses === 0) {
          startedAt = performance.now();
          restart(left);
        }
      }
    },
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
