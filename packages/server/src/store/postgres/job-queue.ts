import type { Awaitable } from "../awaitable.ts";
import { nextIteration } from "../event-loop.ts";
import { Unavailable } from "../store.ts";
import { ConnectionLost, conflicting, PROBE_MS, ServerSilent } from "./connection.ts";
import type { Unit } from "./unit.ts";

/** Units that may share one transaction: enough to share its cost, few enough to stay short. */
export const BATCH_SIZE = 256;
/** How long a unit is retried while the database is unavailable or others conflict with it. */
export const RETRY_TIMEOUT_MS = 3000;
const UNAVAILABLE_RETRY_MS = 50;
/**
 * A unit is tried this often, even after its deadline, if others conflict with it or hold its locks, or
 * if its connection broke: PostgreSQL closes the connections of a process that was paused in a
 * transaction, and its units are late then.
 */
export const MIN_ATTEMPTS = 5;

export type Work = (unit: Unit) => Awaitable<unknown>;

/** A unit of work that has no result yet. */
export interface Job {
  readonly work: Work;
  /** The time after which it is not retried. */
  readonly deadline: number;
  conflicts: number;
  /** How often its connection broke. */
  losses: number;
  /** How often it had to wait for locks of other transactions. */
  lockWaits: number;
  /** The keys of the rows that it is known to need. */
  readonly keys: Set<string>;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** A queue of units of work, with connections of its own. */
export interface Lane {
  enter(work: Work): Promise<unknown>;
  /** Refuses new units, and resolves once all earlier ones have ended. */
  close(): Promise<void>;
}

/**
 * Runs jobs in batches, one after another: `runBatch` resolves when the next batch may begin. `refused` is
 * called for each job that is rejected because the database is unavailable.
 */
export function createJobQueue(
  runBatch: (jobs: Job[]) => Promise<void>,
  refused?: (error: Unavailable) => void,
) {
  const queued: Job[] = [];
  /** Batches that run before all other jobs, and what follows each. */
  const repeated: { jobs: Job[]; ran: () => void }[] = [];
  /** Jobs that are tried again in the order in which they failed, after a pause. */
  const failed: Job[] = [];
  /** Resolves at the end of the pause. No other job overtakes them meanwhile. */
  let pause: Promise<void> | null = null;
  let isRunning = false;
  let isClosed = false;
  /** Number of jobs that have no result yet, those that run included. */
  let unfinished = 0;

  function enter(work: Work): Promise<unknown> {
    if (isClosed) return Promise.reject(new Error("the store is closed"));
    unfinished++;
    const deadline = Date.now() + RETRY_TIMEOUT_MS;
    return new Promise((resolve, reject) => {
      const settle =
        <Value>(end: (value: Value) => void) =>
        (value: Value) => {
          unfinished--;
          end(value);
        };
      queued.push({
        work,
        deadline,
        conflicts: 0,
        losses: 0,
        lockWaits: 0,
        keys: new Set(),
        resolve: settle(resolve),
        reject: settle(reject),
      });
      start();
    });
  }

  /** Puts jobs back to the front of the queue. */
  function putBack(jobs: readonly Job[]): void {
    queued.unshift(...jobs);
    start();
  }

  /**
   * Runs jobs of a batch that failed again in a batch of their own, before all others, so that a job that
   * arrived meanwhile and fails cannot undo them again. Resolves when the next batch may begin.
   */
  async function runAgain(jobs: Job[]): Promise<void> {
    if (jobs.length === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    repeated.push({ jobs, ran: resolve });
    start();
    await promise;
  }

  /** Runs a job again after a temporary error, at least until its deadline; otherwise rejects it. */
  function retry(job: Job, error: unknown): void {
    // The next attempt asks a server that hangs whether it answers again.
    const attemptMs = error instanceof ServerSilent ? PROBE_MS : 0;
    const isInTime = Date.now() + attemptMs < job.deadline;
    if (error instanceof Unavailable) {
      if (error instanceof ConnectionLost) job.losses++;
      const mayTryAgain = error instanceof ConnectionLost && job.losses < MIN_ATTEMPTS;
      if (mayTryAgain || isInTime) retryAfter(UNAVAILABLE_RETRY_MS, job);
      else {
        job.reject(error);
        refused?.(error);
      }
      if (!(error instanceof ConnectionLost)) rejectLate(error);
    } else if (!conflicting(error)) job.reject(error);
    else if (++job.conflicts < MIN_ATTEMPTS || isInTime) retryAfter(0, job);
    else job.reject(new Unavailable("too many changes at once"));
  }

  function retryAfter(ms: number, job: Job): void {
    failed.push(job);
    pause ??= Bun.sleep(ms).then(() => {
      pause = null;
      putBack(failed.splice(0));
    });
  }

  async function close(): Promise<void> {
    isClosed = true;
    while (unfinished > 0) await Bun.sleep(1);
  }

  function start(): void {
    if (!isRunning && hasJobs()) void run();
  }

  const hasJobs = () => queued.length > 0 || repeated.length > 0;

  async function run(): Promise<void> {
    isRunning = true;
    while (hasJobs()) {
      // Jobs that arrive in the same iteration of the event loop share a batch.
      await nextIteration();
      await pause;
      const again = repeated.shift();
      const batch = again?.jobs ?? takeBatch();
      try {
        await runBatch(batch);
        // The results of these jobs are sent first: what their clients send next shares the batch.
        await nextIteration();
      } catch (error) {
        for (const job of batch) retry(job, error);
      }
      again?.ran();
    }
    isRunning = false;
  }

  /** Rejects all jobs whose deadline has passed while they waited, without an attempt for each. */
  function rejectLate(error: Unavailable): void {
    const now = Date.now();
    const inTime = queued.findIndex(({ deadline }) => deadline >= now);
    const late = queued.splice(0, inTime === -1 ? queued.length : inTime);
    for (const job of late) job.reject(error);
  }

  /** A job that conflicted comes first, in a transaction of its own: with others it would fail again. */
  function takeBatch(): Job[] {
    const place = queued.findIndex(({ conflicts }) => conflicts > 0);
    return place === -1 ? queued.splice(0, BATCH_SIZE) : queued.splice(place, 1);
  }

  return { enter, putBack, runAgain, retry, close };
}
