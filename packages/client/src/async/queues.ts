/** Runs the tasks of one key one after another, and those of different keys concurrently. */
export function createQueues(): <Result>(
  key: string,
  task: () => Promise<Result>,
) => Promise<Result> {
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
