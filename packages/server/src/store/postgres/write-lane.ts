import type { Change } from "../../changes/change.ts";
import type { Cursor } from "../../changes/log.ts";
import { Unavailable } from "../store.ts";
import type { Connection, Connections } from "./connection.ts";
import {
  BATCH_SIZE,
  createJobQueue,
  type Job,
  type Lane,
  MIN_ATTEMPTS,
  RETRY_TIMEOUT_MS,
} from "./job-queue.ts";
import { Conflict, Transaction, type TransactionOptions, UnitRun } from "./transaction.ts";
import { Unit } from "./unit.ts";

/**
 * Up to this many units, the next batch begins while this one is being committed. After a larger one it
 * begins after the commit: units that arrive meanwhile share one transaction, and those of the same
 * conversations find no locks.
 */
const SMALL_BATCH = 16;

/** A unit does not wait for locks again this long after its deadline, however often it was tried. */
const LOCK_WAIT_TIMEOUT_MS = 12_000;

export interface WriteLaneOptions {
  /** One batch runs at a time; the next one may begin while small ones are being committed. */
  readonly connections: Connections;
  /** For units that wait for locks. */
  readonly lockWaitConnections: Connections;
  /** Shared by the lanes that write to one database. */
  readonly order: ReturnType<typeof commitOrder>;
  /**
   * Writes the changes of the units to the log, as the last statement before COMMIT. Resolves to the
   * entry; null when there are no changes.
   */
  log(connection: Connection, changes: readonly Change[]): Promise<Cursor | null>;
  /** Whether an entry was committed. Called when the connection broke during COMMIT. */
  wasCommitted(entry: Cursor): Promise<boolean>;
  committed(changes: readonly Change[]): void;
  /** Called with the error for a unit that the database refuses, and with null after a commit. */
  finished?(refusal: Unavailable | null): void;
}

interface RunningJob {
  readonly job: Job;
  readonly run: UnitRun;
}

/**
 * Runs units that write, in the order in which they arrive, many in one transaction. A batch never
 * waits for a lock of another transaction: a unit that needs such a lock moves to connections that
 * wait for locks, and later units that need the same row follow it there.
 */
export function writeLane(options: WriteLaneOptions): Lane {
  const { connections, lockWaitConnections, order, log, committed } = options;
  /** Jobs that wait for locks, by the key of the lock. Jobs that began to wait together share a list. */
  const waiting = new Map<string, Job[]>();
  const isWanted = (key: string) => waiting.has(key);
  const queue = createJobQueue(
    (jobs) => runBatch(jobs, connections, { isWanted }),
    (refusal) => options.finished?.(refusal),
  );

  /** Resolves when the next batch may begin. */
  function runBatch(
    jobs: readonly Job[],
    from: Connections,
    locking: Omit<TransactionOptions, "begin">,
  ): Promise<void> {
    const mayContinue = Promise.withResolvers<void>();
    from
      .use(async (connection) => {
        const transaction = new Transaction(connection, { begin: "BEGIN", ...locking });
        const running = jobs.map((job) => ({ job, run: new UnitRun(transaction) }));
        await Promise.all(
          running.map(({ job, run }) => run.perform(() => job.work(new Unit(run)))),
        );
        const { failed } = transaction;
        if (failed?.error instanceof Unavailable) throw failed.error;
        const isUndone = failed !== null || running.some(({ run }) => run.failure && run.wrote);
        if (isUndone) await connection.run("ROLLBACK");
        handleFailures(running, transaction, isUndone);
        if (jobs.length <= SMALL_BATCH) mayContinue.resolve();
        if (!isUndone) await commit(connection, transaction, running);
        mayContinue.resolve();
      })
      .catch(mayContinue.reject);
    return mayContinue.promise;
  }

  /**
   * Rejects the units that failed by themselves, and runs those again that others made fail. In a batch
   * that is undone, any unit may have failed because of what another one wrote: nobody is rejected, and
   * those that failed after writing run alone.
   */
  function handleFailures(
    running: readonly RunningJob[],
    { failed }: Transaction,
    isUndone: boolean,
  ): void {
    const again: Job[] = [];
    const suspects: Job[] = [];
    const alone: Job[] = [];
    const conflicting = new Map<Job, string>();
    for (const { run, job } of running) {
      const error = run.failure?.error;
      // A statement of a batch of calls may be of any unit: `failed.run` is null then.
      const isSuspect = failed && run.failure && (failed.run === run || failed.run === null);
      if (error instanceof Conflict) {
        for (const key of [...run.owned, error.key]) job.keys.add(key);
        conflicting.set(job, error.key);
      } else if (isSuspect && (failed.run === run || running.length === 1)) {
        queue.retry(job, failed.error);
      } else if (isSuspect) {
        // Each suspect runs in a transaction of its own: the one that fails again is the cause.
        job.conflicts++;
        suspects.push(job);
      } else if (failed) again.push(job);
      else if (!isUndone || running.length === 1) {
        if (run.failure) job.reject(error);
      } else if (run.failure && run.wrote) {
        for (const key of run.owned) job.keys.add(key);
        alone.push(job);
      } else again.push(job);
    }
    queue.putBack(suspects);
    // The others first: they may need the same rows.
    void queue.runAgain(again).then(() => {
      for (const job of alone) void runAlone(job);
    });
    waitForLocks(conflicting);
  }

  async function commit(
    connection: Connection,
    { finished }: Transaction,
    running: readonly RunningJob[],
  ): Promise<void> {
    const changes = finished.flatMap((run) => run.emitted);
    const jobs = new Map(running.map(({ run, job }) => [run, job]));
    const place = order.enter(new Set(finished.flatMap((run) => [...run.owned])));
    let entry: Cursor | null = null;
    let isCommitting = false;
    try {
      entry = await log(connection, changes);
      isCommitting = true;
      const { command } = await connection.run("COMMIT");
      // After a failed statement, PostgreSQL answers COMMIT with ROLLBACK and no error.
      if (command !== "COMMIT") throw new Error("the transaction was rolled back");
    } catch (error) {
      // If the connection broke during COMMIT, the outcome is unknown: the caller has to check.
      const isInDoubt = isCommitting && error instanceof Unavailable;
      for (const run of finished) {
        if (isInDoubt) jobs.get(run)?.reject(error);
        else queue.retry(jobs.get(run) as Job, error);
      }
      place.leave();
      if (isInDoubt && entry !== null) void publishIfCommitted(entry, changes);
      return;
    }
    if (finished.some((run) => run.wrote)) options.finished?.(null);
    await place.earlierLeft;
    publish(changes);
    place.leave();
    for (const run of finished) jobs.get(run)?.resolve(run.result);
  }

  /** This node skips its own entries when it reads the log, so nothing else would deliver them here. */
  async function publishIfCommitted(entry: Cursor, changes: readonly Change[]): Promise<void> {
    if (await options.wasCommitted(entry)) publish(changes);
  }

  function publish(changes: readonly Change[]): void {
    try {
      committed(changes);
    } catch (error) {
      // The listener reports its own errors. One that it missed does not fail committed units.
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }

  /**
   * Moves jobs to the connections that wait for locks. Those that need a row for which others already
   * wait follow them; the rest share their transactions, however many rows they need.
   */
  function waitForLocks(wanted: ReadonlyMap<Job, string>): void {
    const together: Job[] = [];
    const keys: string[] = [];
    for (const [job, key] of wanted) {
      const lateMs = Date.now() - job.deadline;
      const isRefused = ++job.lockWaits >= MIN_ATTEMPTS && lateMs > RETRY_TIMEOUT_MS;
      if (isRefused || lateMs > LOCK_WAIT_TIMEOUT_MS) {
        job.reject(new Unavailable("too many changes at once"));
        continue;
      }
      const others = waiting.get(key);
      if (others) others.push(job);
      else {
        waiting.set(key, together);
        together.push(job);
        keys.push(key);
      }
    }
    if (together.length > 0) void runWaiting(keys, together);
  }

  /** Runs a job in a transaction of its own, which keeps no other one waiting. */
  async function runAlone(job: Job): Promise<void> {
    try {
      await runBatch([job], lockWaitConnections, { lockFirst: [...job.keys] });
    } catch (error) {
      queue.retry(job, error);
    }
  }

  /** Runs jobs that wait for these keys, in transactions that first lock all rows that they need. */
  async function runWaiting(keys: readonly string[], jobs: Job[]): Promise<void> {
    while (jobs.length > 0) {
      const batch = jobs.splice(0, BATCH_SIZE);
      const lockFirst = [...new Set(batch.flatMap((job) => [...job.keys]))];
      try {
        await runBatch(batch, lockWaitConnections, { lockFirst });
      } catch (error) {
        for (const job of batch) queue.retry(job, error);
      }
    }
    for (const key of keys) waiting.delete(key);
  }

  return {
    enter: queue.enter,
    close: async () => {
      await queue.close();
      await connections.close();
      await lockWaitConnections.close();
    },
  };
}

/**
 * Transactions that lock the same row publish their changes in the order in which they locked it.
 * PostgreSQL releases the locks of a transaction before it acknowledges the COMMIT, so the next
 * transaction that locks the row, on another connection, may be acknowledged first.
 */
export function commitOrder() {
  /** The transactions that are being committed, by the rows that they lock. */
  const last = new Map<string, Promise<void>>();
  return {
    /** Takes a place after all transactions that lock one of these keys. Called before COMMIT is sent. */
    enter(keys: ReadonlySet<string>) {
      const earlier = [...keys].map((key) => last.get(key));
      const { promise: left, resolve } = Promise.withResolvers<void>();
      for (const key of keys) last.set(key, left);
      return {
        earlierLeft: Promise.all(earlier),
        leave: () => {
          for (const key of keys) if (last.get(key) === left) last.delete(key);
          resolve();
        },
      };
    },
  };
}
