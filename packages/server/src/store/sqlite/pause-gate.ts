/** Keeps work from beginning while a task runs. */
export function pauseGate() {
  let paused: Promise<void> | null = null;
  return {
    isPaused: () => paused !== null,
    resumed: () => paused,
    async pause<Result>(task: () => Promise<Result>): Promise<Result> {
      while (paused) await paused;
      const over = Promise.withResolvers<void>();
      paused = over.promise;
      try {
        return await task();
      } finally {
        paused = null;
        over.resolve();
      }
    },
  };
}
