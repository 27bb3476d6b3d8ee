const STEP_MS = 10;

/** Measures the event loop's delay. Returns the longest delay since the last call, in seconds. */
export function watchLoopLag(): () => number {
  let worst = 0;
  let expected = performance.now() + STEP_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    worst = Math.max(worst, now - expected);
    expected = now + STEP_MS;
  }, STEP_MS);
  timer.unref();
  return () => {
    const seen = worst;
    worst = 0;
    return seen / 1000;
  };
}
