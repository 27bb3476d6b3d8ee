/** Runs work now, at intervals, and on demand; never twice at the same time. */
export function runRegularly(everyMs: number, work: () => Promise<unknown>) {
  let running: Promise<void> | null = null;
  let isWanted = false;
  let isEnded = false;
  async function runAll(): Promise<void> {
    while (isWanted) {
      isWanted = false;
      await work();
    }
  }
  const run = () => {
    if (isEnded) return;
    isWanted = true;
    running ??= runAll().finally(() => {
      running = null;
    });
  };
  run();
  const timer = setInterval(run, everyMs);
  timer.unref();
  return {
    run,
    async stop(): Promise<void> {
      clearInterval(timer);
      isEnded = true;
      isWanted = false;
      await running;
    },
  };
}
