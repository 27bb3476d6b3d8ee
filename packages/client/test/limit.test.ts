import { expect, test } from "bun:test";
import { createLimit } from "../src/async/limit.ts";

const NEVER = new AbortController().signal;

/** A task that ends when the test says so. */
function openTask() {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const task = { hasStarted: false, end, run: () => ended };
  return Object.assign(task, {
    run() {
      task.hasStarted = true;
      return ended;
    },
  });
}

test("tasks beyond the limit wait in order, and those that are aborted leave the queue", async () => {
  const limited = createLimit(2);
  const tasks = Array.from({ length: 5 }, openTask);
  const abort = new AbortController();
  const runs = tasks.map(({ run }, index) => limited(run, index === 2 ? abort.signal : NEVER));
  const started = () => tasks.map(({ hasStarted }) => hasStarted);
  expect(started()).toEqual([true, true, false, false, false]);
  abort.abort(new Error("enough"));
  await expect(runs[2]).rejects.toThrow("enough");
  tasks[1]?.end();
  await runs[1];
  await Promise.resolve();
  expect(started()).toEqual([true, true, false, true, false]);
  for (const { end } of tasks) end();
  await Promise.all([runs[0], runs[3], runs[4]]);
  expect(started()).toEqual([true, true, false, true, true]);
});

test("a task that fails makes room for the next one", async () => {
  const limited = createLimit(1);
  const failing = limited(() => Promise.reject(new Error("broken")), NEVER);
  const next = limited(async () => "done", NEVER);
  await expect(failing).rejects.toThrow("broken");
  expect(await next).toBe("done");
});
