/** How often the delay is measured while there is one, and while there is none: waking up costs CPU time. */
const BUSY_STEP_MS = 10;
const IDLE_STEP_MS = 160;
/** A timer that is later than this was held up by other work. */
const ON_TIME_MS = 2;

/** Measures the event loop's delay. Returns the longest delay since the last call, in seconds. */
export function watchLoopLag(): () => number {
  let worst = 0;
  let stepMs = BUSY_STEP_MS;
  const measure = () => {
    const expected = performance.now() + stepMs;
    const timer = setTimeout(() => {
      const lag = performance.now() - expected;
      worst = Math.max(worst, lag);
      stepMs = lag > ON_TIME_MS ? BUSY_STEP_MS : Math.min(stepMs * 2, IDLE_STEP_MS);
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
