import type { Database } from "bun:sqlite";
import type { Change } from "../../changes/change.ts";
import type { Awaitable } from "../awaitable.ts";
import { Unavailable, type WriteTx } from "../store.ts";
import type { Connection } from "./sql.ts";

const BATCH_MS = 10;

export type Unit = (tx: WriteTx) => Awaitable<unknown>;

/** A unit of work that waits for its commit. */
export interface Job {
  readonly unit: Unit;
  /** Whether it must be on disk before its caller and the subscribers hear of it. */
  readonly durable: boolean;
  /** What the unit emitted, once it has run. */
  changes: readonly Change[];
  /** Whether the unit wrote or emitted anything. */
  wrote: boolean;
  result: unknown;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

export interface BatchOptions {
  db: Database;
  connection: Connection;
  tx: Omit<WriteTx, "emit" | "signal">;
  /** Writes the changes of a transaction to the change log, before it commits. */
  log(changes: readonly Change[]): void;
  /** Called with the error if the disk refuses a transaction, and with null when one has committed. */
  finished?(refusal: Unavailable | null): void;
  /** No further unit joins a transaction after this time: reads and sockets wait while it runs. */
  batchMs?: number;
}

/**
 * Returns a function that runs jobs one after another in one transaction, and returns those that it
 * had no time for. `committed` is called in the same moment as the commit, before any reader can
 * have seen it. Jobs that fail are rejected.
 */
export function batchTransaction(
  { db, connection, log, tx: methods, finished, batchMs = BATCH_MS }: BatchOptions,
  committed: (jobs: readonly Job[]) => void,
) {
  const commit = db.query("COMMIT");
  const savepoint = db.query("SAVEPOINT unit");
  const release = db.query("RELEASE unit");
  let changes: Change[] = [];
  let refusal: Unavailable | null = null;
  const emit = (change: Change) => void changes.push(change);
  const tx: WriteTx = { ...methods, emit, signal: emit };

  /** Returns whether the unit succeeded. A unit that returns no promise costs none. */
  function runUnit(job: Job): boolean | Promise<boolean> {
    changes = [];
    connection.begin();
    try {
      const result = job.unit(tx);
      return result instanceof Promise ? awaitUnit(job, result) : succeed(job, result);
    } catch (error) {
      return fail(job, error);
    }
  }

  async function awaitUnit(job: Job, result: Promise<unknown>): Promise<boolean> {
    try {
      return succeed(job, await result);
    } catch (error) {
      return fail(job, error);
    }
  }

  function fail(job: Job, error: unknown): false {
    const reason = explained(error);
    if (reason !== error && reason instanceof Unavailable) refusal = reason;
    job.reject(reason);
    return false;
  }

  function succeed(job: Job, result: unknown): boolean {
    job.result = result;
    job.changes = changes;
    job.wrote = connection.wrote || changes.length > 0;
    return true;
  }

  /** With `savepoints`, each unit can be undone alone. */
  return async function run(jobs: Job[], savepoints = false): Promise<Job[]> {
    const done: Job[] = [];
    let remaining: Job[] = [];
    const startedAt = performance.now();
    refusal = null;
    try {
      connection.beginTransaction();
      for (const [index, job] of jobs.entries()) {
        if (performance.now() - startedAt > batchMs) {
          remaining = jobs.splice(index);
          break;
        }
        if (savepoints) savepoint.run();
        const ran = runUnit(job);
        const hasSucceeded = ran === true || (ran !== false && (await ran));
        // After some errors, such as a full disk, SQLite has rolled back the whole transaction.
        if (!db.inTransaction) throw refusal ?? new Error("the transaction was rolled back");
        if (hasSucceeded) {
          if (savepoints) connection.flush();
          done.push(job);
        } else if (savepoints) connection.rollBackTo("unit");
        else if (connection.wrote) {
          // What it wrote can only be undone together with the units before it. They run again, with
          // savepoints: those cost time, and units that fail after writing are rare.
          connection.rollBack();
          return run([...done, ...jobs.slice(index + 1)], true);
        }
        if (savepoints) release.run();
      }
      connection.flush();
      log(done.flatMap((job) => job.changes));
      commit.run();
      committed(done);
      if (done.some(({ wrote }) => wrote)) finished?.(refusal);
    } catch (error) {
      connection.rollBack();
      const reason = explained(error);
      for (const job of jobs) job.reject(reason);
      if (reason instanceof Unavailable) finished?.(reason);
    }
    return remaining;
  };
}

/** Space is freed by people, so that an early retry only costs. */
const RETRY_S = 5;

/** The error of a disk that takes no more, or of files that cannot be written; others stay what they are. */
function explained(error: unknown): unknown {
  const { code = "" } = error as { code?: string };
  const options = { retryAfter: RETRY_S, cause: error };
  if (code === "SQLITE_FULL") return new Unavailable("the disk of the server is full", options);
  if (!/^SQLITE_(READONLY|CANTOPEN|IOERR)/.test(code)) return error;
  return new Unavailable("the database cannot be written", options);
}
