import { expect, test } from "bun:test";
import { SQL } from "bun";
import { type Job, JobQueue } from "../src/store/postgres/job-queue.ts";

const duplicateKey = new SQL.PostgresError("duplicate key", { code: "", errno: "23505" } as never);

test("a unit that others conflict with runs alone next, however many arrive", async () => {
  const attempts = new Map<Job, number>();
  // Of several units in one transaction, the second one fails, and the others start over.
  const queue = new JobQueue(async (jobs) => {
    for (const job of jobs) attempts.set(job, (attempts.get(job) ?? 0) + 1);
    await Bun.sleep(2);
    const [first, second, ...others] = jobs as [Job, ...Job[]];
    if (!second) return first.resolve(null);
    queue.retry(second, duplicateKey);
    queue.putBack([first, ...others]);
  });
  await Promise.all(Array.from({ length: 20 }, () => queue.enter(() => null)));
  const conflicts = [...attempts.keys()].map((job) => job.conflicts);
  expect(Math.max(...conflicts)).toBe(1);
});
