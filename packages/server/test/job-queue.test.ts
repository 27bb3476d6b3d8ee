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
