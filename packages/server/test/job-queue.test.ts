import { expect, setSystemTime, test } from "bun:test";
import { SQL } from "bun";
import { ConnectionLost } from "../src/store/postgres/connection.ts";
import {
  BATCH_SIZE,
  createJobQueue,
  type Job,
  RETRY_TIMEOUT_MS,
} from "../src/store/postgres/job-queue.ts";
import { Unavailable } from "../src/store/store.ts";

const conflict = () =>
  new SQL.PostgresError("duplicate key", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "23505" });

/** A queue whose first attempts conflict, each after the time for retries is over. */
function slowQueue(conflicts: number) {
  let attempts = 0;
  const queue = createJobQueue(async (jobs: Job[]) => {
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
  const queue = createJobQueue(async (batch) => {
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

test("units whose connection broke run again in their order, before those that arrived later", async () => {
  const ran: unknown[] = [];
  let attempts = 0;
  const queue = createJobQueue(async (batch) => {
    if (++attempts === 1) {
      void queue.enter(() => 3);
      throw new ConnectionLost();
    }
    for (const job of batch) {
      const result = job.work(null as never);
      ran.push(result);
      job.resolve(result);
    }
  });
  await Promise.all([0, 1, 2].map((n) => queue.enter(() => n)));
  await queue.close();
  expect(ran).toEqual([0, 1, 2, 3]);
});

test("units that have waited too long are all refused once the database cannot be reached", async () => {
  try {
    let attempts = 0;
    const queue = createJobQueue(async () => {
      attempts++;
      setSystemTime(Date.now() + RETRY_TIMEOUT_MS + 1);
      throw new Unavailable("the database cannot be reached");
    });
    const waiting = Array.from({ length: 3 * BATCH_SIZE }, () => queue.enter(() => null));
    const outcomes = await Promise.allSettled(waiting);
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(["rejected"]));
    expect(attempts).toBe(1);
  } finally {
    setSystemTime();
  }
});
