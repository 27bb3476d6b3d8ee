import { expect, setSystemTime, test } from "bun:test";
import { SQL } from "bun";
import { type Job, JobQueue, RETRY_TIMEOUT_MS } from "../src/store/postgres/job-queue.ts";

const conflict = () =>
  new SQL.PostgresError("duplicate key", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "23505" });

/** A queue whose first attempts conflict, each after the time for retries is over. */
function slowQueue(conflicts: number) {
  let attempts = 0;
  const queue = new JobQueue(async (jobs: Job[]) => {
    setSystemTime(Date.now() + RETRY_TIMEOUT_MS);
    attempts++;
    if (attempts <= conflicts) throw conflict();
    for (const job of jobs) job.resolve("done");
  });
  return { queue, attempts: () => attempts };
}

test("a unit that conflicts is tried again on a slow machine, but not forever", async () => {
  try {
    const slow = slowQueue(2);
    expect(await slow.queue.enter(() => null)).toBe("done");

    const hopeless = slowQueue(1000);
    await expect(hopeless.queue.enter(() => null)).rejects.toThrow("too many changes at once");
    expect(hopeless.attempts()).toBe(5);
  } finally {
    setSystemTime();
  }
});

test("a unit that others conflict with runs alone next, however many arrive", async () => {
  const jobs = new Set<Job>();
  // Of several units in one transaction, the second one fails, and the others start over.
  const queue = new JobQueue(async (batch) => {
    for (const job of batch) jobs.add(job);
    await Bun.sleep(2);
    const [first, second, ...others] = batch as [Job, ...Job[]];
    if (!second) return first.resolve(null);
    queue.retry(second, conflict());
    queue.putBack([first, ...others]);
  });
  await Promise.all(Array.from({ length: 20 }, () => queue.enter(() => null)));
  expect(Math.max(...[...jobs].map(({ conflicts }) => conflicts))).toBe(1);
});
