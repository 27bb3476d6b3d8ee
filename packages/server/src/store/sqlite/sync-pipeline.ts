import type { Change } from "../../changes/change.ts";
import { Unavailable } from "../store.ts";
import type { Job } from "./batch-transaction.ts";

/** Jobs that share one sync. */
interface SyncBatch {
  readonly jobs: readonly Job[];
  readonly synced: PromiseWithResolvers<void>;
}

export interface SyncPipelineOptions {
  /** Puts the write-ahead log on disk without blocking the event loop. */
  sync(): Promise<void>;
  /** Receives the changes of committed jobs. */
  committed(changes: readonly Change[]): void;
  /** Called when a sync has failed. */
  failed(error: unknown): void;
}

/** Syncs one batch at a time. During a sync only notes commit. */
export function syncPipeline({ sync, committed, failed }: SyncPipelineOptions) {
  let current: SyncBatch | null = null;
  let failure: { error: unknown } | null = null;

  async function syncBatch(batch: SyncBatch): Promise<void> {
    current = batch;
    try {
      await sync();
      if (failure) throw failure.error;
      finish(batch.jobs);
      batch.synced.resolve();
    } catch (error) {
      fail(error);
      for (const job of batch.jobs) job.reject(failure?.error);
      batch.synced.reject(failure?.error);
    }
    current = null;
  }

  function fail(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    failure ??= { error: new Unavailable(`the store has stopped: ${reason}`, { cause: error }) };
    failed(failure.error);
  }

  function finish(jobs: readonly Job[]): void {
    try {
      committed(jobs.flatMap((job) => job.changes));
    } catch (error) {
      // The listener reports its own errors. One that it missed does not fail committed jobs.
      process.emitWarning(error instanceof Error ? error : String(error));
    }
    for (const job of jobs) job.resolve(job.result);
  }

  return {
    /**
     * Resolves jobs whose transaction has committed: durable ones after a sync unless there is nothing
     * to sync, the others at once.
     */
    add(jobs: readonly Job[]): void {
      const durable = jobs.filter((job) => job.durable);
      // A unit that wrote nothing may have read what another one of the batch wrote.
      const isOnDisk = !durable.some((job) => job.wrote);
      const done = isOnDisk ? jobs : jobs.filter((job) => !job.durable);
      if (done.length > 0) finish(done);
      if (done.length < jobs.length) void syncBatch(newBatch(durable));
    },
    /** Resolves once everything added so far is on disk; undefined when it is. */
    settled: (): Promise<void> | undefined =>
      failure ? Promise.reject(failure.error) : current?.synced.promise,
    /** Rejects all jobs that are not resolved: a file could not be written or synced elsewhere. */
    fail,
    /** Set when a sync has failed: what is on disk is unknown until the database is opened again. */
    failure: () => failure,
    /**
     * Resolves, never rejects, when the sync in progress ends; undefined when there is none. `failed`
     * reports its error, and `failure` keeps it.
     */
    syncing: () => current?.synced.promise.catch(() => {}),
  };
}

function newBatch(jobs: readonly Job[]): SyncBatch {
  const synced = Promise.withResolvers<void>();
  // A failed sync is no unhandled rejection when no reader waits for it.
  synced.promise.catch(() => {});
  return { jobs, synced };
}
