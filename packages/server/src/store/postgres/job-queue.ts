import type { Awaitable } from "../awaitable.ts";
import { nextIteration } from "../event-loop.ts";
import { Unavailable } from "../store.ts";
import { ConnectionLost, conflicting, ServerSilent } from "./connection.ts";
import { PROBE_MS } from "./server-probe.ts";
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

/** Runs jobs in batches, one after another: `runBatch` resolves when the next batch may begin. */
export class JobQueue {
  readonly #runBatch: (jobs: Job[]) => Promise<void>;
  readonly #refused: ((error: Unavailable) => void) | undefined;
  readonly #jobs: Job[] = [];
  /** Batches that run before all other jobs, and what follows each. */
  readonly #again: { jobs: Job[]; ran: () => void }[] = [];
  /** Jobs that are tried again in the order in which they failed, after a pause. */
  readonly #failed: Job[] = [];
  /** Resolves at the end of the pause. No other job overtakes them meanwhile. */
  #pause: Promise<void> | null = null;
  #isRunning = false;
  #isClosed = false;
  /** Number of jobs that have no result yet, those that run included. */
  #unfinished = 0;

  /** `refused` is called for each job that is rejected because the database is unavailable. */
  constructor(runBatch: (jobs: Job[]) => Promise<void>, refused?: (error: Unavailable) => void) {
    this.#runBatch = runBatch;
    this.#refused = refused;
  }

  enter(work: Work): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(new Error("the store is closed"));
    this.#unfinished++;
    const deadline = Date.now() + RETRY_TIMEOUT_MS;
    return new Promise((resolve, reject) => {
      const settle =
        <Value>(end: (value: Value) => void) =>
        (value: Value) => {
          this.#unfinished--;
          end(value);
        };
      this.#jobs.push({
        work,
        deadline,
        conflicts: 0,
        losses: 0,
        lockWaits: 0,
        keys: new Set(),
        resolve: settle(resolve),
        reject: settle(reject),
      });
      this.#start();
    });
  }

  /** Puts jobs back to the front of the queue. */
  putBack(jobs: readonly Job[]): void {
    this.#jobs.unshift(...jobs);
    this.#start();
  }

  /**
   * Runs jobs of a batch that failed again in a batch of their own, before all others, so that a job that
   * arrived meanwhile and fails cannot undo them again. Resolves when the next batch may begin.
   */
  async runAgain(jobs: Job[]): Promise<void> {
    if (jobs.length === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#again.push({ jobs, ran: resolve });
    this.#start();
    await promise;
  }

  /** Runs a job again after a temporary error, at least until its deadline; otherwise rejects it. */
  retry(job: Job, error: unknown): void {
    // The next attempt asks a server that hangs whether it answers again.
    const attemptMs = error instanceof ServerSilent ? PROBE_MS : 0;
    const isInTime = Date.now() + attemptMs < job.deadline;
    if (error instanceof Unavailable) {
      if (error instanceof ConnectionLost) job.losses++;
      const mayTryAgain = error instanceof ConnectionLost && job.losses < MIN_ATTEMPTS;
      if (mayTryAgain || isInTime) this.#retryAfter(UNAVAILABLE_RETRY_MS, job);
      else {
        job.reject(error);
        this.#refused?.(error);
      }
      if (!(error instanceof ConnectionLost)) this.#rejectLate(error);
    } else if (!conflicting(error)) job.reject(error);
    else if (++job.conflicts < MIN_ATTEMPTS || isInTime) this.#retryAfter(0, job);
    else job.reject(new Unavailable("too many changes at once"));
  }

  #retryAfter(ms: number, job: Job): void {
    this.#failed.push(job);
    this.#pause ??= Bun.sleep(ms).then(() => {
      this.#pause = null;
      this.putBack(this.#failed.splice(0));
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    while (this.#unfinished > 0) await Bun.sleep(1);
  }

  #start(): void {
    if (!this.#isRunning && this.#hasJobs()) void this.#run();
  }

  #hasJobs = () => this.#jobs.length > 0 || this.#again.length > 0;

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#hasJobs()) {
      // Jobs that arrive in the same iteration of the event loop share a batch.
      await nextIteration();
      await this.#pause;
      const again = this.#again.shift();
      const batch = again?.jobs ?? this.#takeBatch();
      try {
        await this.#runBatch(batch);
        // The results of these jobs are sent first: what their clients send next shares the batch.
        await nextIteration();
      } catch (error) {
        for (const job of batch) this.retry(job, error);
      }
      again?.ran();
    }
    this.#isRunning = false;
  }

  /** Rejects all jobs whose deadline has passed while they waited, without an attempt for each. */
  #rejectLate(error: Unavailable): void {
    const now = Date.now();
    const inTime = this.#jobs.findIndex(({ deadline }) => deadline >= now);
    const late = this.#jobs.splice(0, inTime === -1 ? this.#jobs.length : inTime);
    for (const job of late) job.reject(error);
  }

  /** A job that conflicted comes first, in a transaction of its own: with others it would fail again. */
  #takeBatch(): Job[] {
    const place = this.#jobs.findIndex(({ conflicts }) => conflicts > 0);
    return place === -1 ? this.#jobs.splice(0, BATCH_SIZE) : this.#jobs.splice(place, 1);
  }
}
