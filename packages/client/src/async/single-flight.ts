/** Runs the task, or joins the run with the same key that is under way. */
export function singleFlight(
  running: Map<string, Promise<void>>,
  key: string,
  task: () => Promise<void>,
): Promise<void> {
  const known = running.get(key);
  if (known) return known;
  const run = task().finally(() => {
    if (running.get(key) === run) running.delete(key);
  });
  running.set(key, run);
  return run;
}
