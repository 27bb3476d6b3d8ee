import type { Change } from "../../changes/change.ts";
import { nextIteration } from "../event-loop.ts";
import { type BatchOptions, batchTransaction, type Job, type Unit } from "./batch-transaction.ts";
import { pauseGate } from "./pause-gate.ts";
import { type SyncPipelineOptions, syncPipeline } from "./sync-pipeline.ts";

/** Units that may share one transaction: enough to share its cost, few enough to keep it short. */
const BATCH_SIZE = 1024;
const NO_CHANGES: readonly Change[] = [];

export type BatchWriter = ReturnType<typeof batchWriter>;
export type BatchWriterOptions = BatchOptions & Omit<SyncPipelineOptions, "failed">;

/**
 * Runs units of work one after another, many in one transaction, and syncs once after each transaction.
 * Units that arrive during a sync share the next transaction.
 */
export function batchWriter(options: BatchWriterOptions) {
  const queue = jobQueue();
  const gate = pauseGate();
  const pipeline = syncPipeline({
    sync: options.sync,
    committed: options.committed,
    failed: (error) => {
      for (const job of queue.clear()) job.reject(error);
    },
  });
  const runBatch = batchTransaction(options, pipeline.add);
  let working = false;
  let transaction: Promise<Job[]> | null = null;
  let closed = false;

  async function work(): Promise<void> {
    working = true;
    while (queue.length() > 0) {
      // Units that arrive in the same iteration of the event loop share a batch.
      await nextIteration();
      while (gate.isPaused()) await gate.resumed();
      const syncing = pipeline.syncing();
      const jobs = syncing ? queue.takeNotes() : queue.takeAll();
      if (jobs.length === 0) {
        await Promise.race([queue.noteArrived(), syncing]);
        // The answers to the synced units go out first: what their clients send next shares the batch.
        await nextIteration();
        continue;
      }
      transaction = runBatch(jobs);
      queue.putBack(await transaction);
      transaction = null;
    }
    working = false;
  }

  const enter = (unit: Unit, durable: boolean): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const failure = pipeline.failure();
      if (failure) throw failure.error;
      if (closed) throw new Error("the store is closed");
      const wrote = false;
      queue.add({ unit, durable, changes: NO_CHANGES, wrote, result: undefined, resolve, reject });
      if (!working) void work();
    });

  const { settled, fail, failure } = pipeline;
  return {
    settled,
    fail,
    failure,
    write: (unit: Unit) => enter(unit, true),
    /** Runs a unit without waiting for a sync, neither before nor after it. */
    note: (unit: Unit) => enter(unit, false),
    /** Refuses new units, and resolves once all earlier ones have ended. */
    close: async () => {
      closed = true;
      while (working) await nextIteration();
      await pipeline.syncing();
    },
    /** Runs a task while no transaction is open. */
    pause: <Result>(task: () => Promise<Result>) =>
      gate.pause(async () => {
        await transaction;
        return task();
      }),
  };
}

/** Jobs that have not run. Notes do not wait for a sync, and run before the others. */
function jobQueue() {
  const durable: Job[] = [];
  const notes: Job[] = [];
  let arrival: PromiseWithResolvers<void> | null = null;

  return {
    length: () => durable.length + notes.length,
    add(job: Job): void {
      (job.durable ? durable : notes).push(job);
      if (!job.durable) arrival?.resolve();
    },
    takeNotes: (): Job[] => notes.splice(0),
    takeAll: (): Job[] =>
      notes.length === 0
        ? durable.splice(0, BATCH_SIZE)
        : [...notes.splice(0), ...durable.splice(0, BATCH_SIZE)],
    /** Puts jobs that did not run back to the front. */
    putBack(jobs: readonly Job[]): void {
      if (jobs.length === 0) return;
      durable.unshift(...jobs.filter((job) => job.durable));
      notes.unshift(...jobs.filter((job) => !job.durable));
    },
    noteArrived(): Promise<void> {
      arrival = Promise.withResolvers();
      return arrival.promise;
    },
    /** Empties the queue. */
    clear: (): Job[] => [...durable.splice(0), ...notes.splice(0)],
  };
}
