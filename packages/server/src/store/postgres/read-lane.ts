import { Unavailable } from "../store.ts";
import type { Connections } from "./connection.ts";
import { createJobQueue, type Job, type Lane } from "./job-queue.ts";
import { Transaction, UnitRun } from "./transaction.ts";
import { Unit } from "./unit.ts";

const BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/** Runs units that only read. The units of a batch share one snapshot. */
export function readLane(connections: Connections): Lane {
  const queue = createJobQueue(runBatch);

  /** Resolves once the batch has a connection, so that the next one can use another. */
  function runBatch(jobs: readonly Job[]): Promise<void> {
    const hasConnection = Promise.withResolvers<void>();
    connections
      .use(async (connection) => {
        hasConnection.resolve();
        const transaction = new Transaction(connection, { begin: BEGIN, readOnly: true });
        const isAlone = jobs.length === 1;
        await Promise.all(jobs.map((job) => runJob(transaction, job, isAlone)));
        const end = transaction.failed ? "ROLLBACK" : "COMMIT";
        await connection.run(end).catch(ignoreFailedEnd);
      })
      .catch(hasConnection.reject);
    return hasConnection.promise;
  }

  async function runJob(transaction: Transaction, job: Job, isAlone: boolean): Promise<void> {
    const run = new UnitRun(transaction);
    await run.perform(() => job.work(new Unit(run)));
    const { failed } = transaction;
    if (!run.failure) job.resolve(run.result);
    else if (!failed) job.reject(run.failure.error);
    else if (failed.error instanceof Unavailable || failed.run === run || isAlone) {
      queue.retry(job, failed.error);
    } else {
      // A statement of several units: each of them runs alone next, and is rejected if it fails again.
      if (failed.run === null) job.conflicts++;
      queue.putBack([job]);
    }
  }

  return {
    enter: queue.enter,
    close: async () => {
      await queue.close();
      await connections.close();
    },
  };
}

/** The units have their results, and a transaction that only reads leaves nothing behind. */
const ignoreFailedEnd = () => undefined;
