/** How often the delay is measured: most often while the process works, because waking up costs CPU time. */
const BUSY_STEP_MS = 10;
const IDLE_STEP_MS = 1280;
/** A process that uses more of a core than this is working. */
const BUSY_SHARE = 0.05;

/** Measures the event loop's delay. Returns the longest delay since the last call, in seconds. */
export function watchLoopLag(): () => number {
  let worst = 0;
  let stepMs = BUSY_STEP_MS;
  const measure = () => {
    const before = process.cpuUsage();
    const expected = performance.now() + stepMs;
    const timer = setTimeout(() => {
      worst = Math.max(worst, performance.now() - expected);
      const { user, system } = process.cpuUsage(before);
      const isBusy = user + system > BUSY_SHARE * stepMs * 1000;
      stepMs = isBusy ? BUSY_STEP_MS : Math.min(stepMs * 2, IDLE_STEP_MS);
      measure();
    }, stepMs);
    timer.unref();
  };
  measure();
  return () => {
    const seen = worst;
    worst = 0;
    return seen / 1000;
  };
}
