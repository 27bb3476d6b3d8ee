/** Starts a task unless it runs already, and returns the one that runs. */
export function once(
  running: Map<string, Promise<void>>,
  id: string,
  task: () => Promise<void>,
): Promise<void> {
  const known = running.get(id);
  if (known) return known;
  const run = task().finally(() => {
    if (running.get(id) === run) running.delete(id);
  });
  running.set(id, run);
  return run;
}
