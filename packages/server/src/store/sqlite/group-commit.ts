import type { Database } from "bun:sqlite";
import type { Change } from "../../changes/change.ts";
import type { Awaitable } from "../awaitable.ts";
import type { WriteTx } from "../store.ts";
import type { Connection } from "./connection.ts";

/** Units that may share one transaction: enough to share its cost, few enough to stay short. */
const GROUP_SIZE = 1024;
/** After so long no further unit joins it: everybody else waits while it runs. */
const GROUP_MS = 10;

type Unit = (tx: WriteTx) => Awaitable<unknown>;

interface Job {
  unit: Unit;
  /** Whether it has to be on disk before anybody hears of it. */
  durable: boolean;
  changes: Change[];
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** What was committed since the last sync began. */
interface Batch {
  finished: { job: Job; result: unknown }[];
  synced: PromiseWithResolvers<void>;
}

export interface GroupWriter {
  write(unit: Unit): Promise<unknown>;
  /** The same without waiting for the disk, neither before nor after. */
  note(unit: Unit): Promise<unknown>;
  /** Resolves once everything committed so far is on disk. */
  settled(): Promise<void> | undefined;
  /** How many units have been committed. */
  written(): number;
  /** Runs something while no transaction is open and none begins. */
  pause(task: () => Promise<void>): Promise<void>;
  /** Refuses what comes from now on, and resolves once all that came before is done. */
  close(): Promise<void>;
}

export interface GroupOptions {
  db: Database;
  connection: Connection;
  tx: Omit<WriteTx, "emit" | "signal">;
  /** Writes the changes of a transaction's units to the change log, before it commits. */
  log(units: readonly { changes: readonly Change[] }[]): void;
  /** Puts the log on disk without holding up the event loop. */
  sync(): Promise<void>;
  committed(changes: readonly Change[]): void;
}

/**
 * Runs units of work one after another, many in one transaction, and syncs once for all that was
 * committed meanwhile.
 */
export function groupWriter(options: GroupOptions): GroupWriter {
  const { db, connection, sync, committed } = options;
  const begin = db.query("BEGIN IMMEDIATE");
  const commit = db.query("COMMIT");
  const rollback = db.query("ROLLBACK");
  let changes: Change[] = [];
  const emit = (change: Change) => void changes.push(change);
  const tx: WriteTx = { ...options.tx, emit, signal: emit };

  const waiting: Job[] = [];
  const notes: Job[] = [];
  let noted: PromiseWithResolvers<void> | null = null;
  let working = false;
  let transaction: Promise<void> | null = null;
  let paused: Promise<void> | null = null;
  let next: Batch | null = null;
  let inSync: Batch | null = null;
  let written = 0;
  let closed = false;
  /** Set when a sync failed: what is on disk is then unknown, and only a restart can tell. */
  let broken: unknown = null;

  async function work(): Promise<void> {
    working = true;
    while (waiting.length + notes.length > 0) {
      // Everything that arrives in the same turn of the event loop shares a group.
      await new Promise<void>((resolve) => setImmediate(resolve));
      while (paused) await paused;
      // Notes first: they are short, and somebody watches for them.
      const jobs = [...notes.splice(0), ...(inSync ? [] : waiting.splice(0, GROUP_SIZE))];
      if (jobs.length === 0) {
        await diskOrNote();
        continue;
      }
      transaction = commitGroup(jobs);
      await transaction;
      transaction = null;
    }
    working = false;
  }

  /** The disk sets the pace: what arrives during one sync shares the next transaction. */
  async function diskOrNote(): Promise<void> {
    noted = Promise.withResolvers();
    await Promise.race([noted.promise, inSync?.synced.promise.catch(() => {})]);
    noted = null;
  }

  /** One transaction for all. A unit that fails after it wrote spoils it: the others begin again. */
  async function commitGroup(jobs: Job[]): Promise<void> {
    const done: Batch["finished"] = [];
    const began = performance.now();
    let again: Job[] = [];
    try {
      begin.run();
      for (const [index, job] of jobs.entries()) {
        if (performance.now() - began > GROUP_MS) {
          putBack(jobs.splice(index));
          break;
        }
        const spoiled = await attempt(job, done);
        if (!spoiled) continue;
        rollback.run();
        again = [...done.map((each) => each.job), ...jobs.slice(index + 1)];
        break;
      }
      if (db.inTransaction) {
        options.log(done.map(({ job }) => job));
        commit.run();
        finish(done);
      }
    } catch (error) {
      if (db.inTransaction) rollback.run();
      for (const job of jobs) job.reject(error);
    }
    if (again.length > 0) await commitGroup(again);
  }

  /** They are the first of the next group. */
  function putBack(jobs: readonly Job[]): void {
    waiting.unshift(...jobs.filter((job) => job.durable));
    notes.unshift(...jobs.filter((job) => !job.durable));
  }

  /** Whether the transaction is spoiled. */
  async function attempt(job: Job, done: Batch["finished"]): Promise<boolean> {
    changes = [];
    connection.wrote = false;
    try {
      const result = await job.unit(tx);
      job.changes = changes;
      done.push({ job, result });
      return false;
    } catch (error) {
      job.reject(error);
      return connection.wrote;
    }
  }

  function finish(done: Batch["finished"]): void {
    written += done.length;
    const durable = done.filter(({ job }) => job.durable);
    const told = done.filter(({ job }) => !job.durable);
    tell(told);
    for (const { job, result } of told) job.resolve(result);
    if (durable.length === 0) return;
    if (!next) {
      next = { finished: [], synced: Promise.withResolvers() };
      // Heard by readers, if there are any.
      next.synced.promise.catch(() => {});
    }
    next.finished.push(...durable);
    if (!inSync) void syncBatches();
  }

  async function syncBatches(): Promise<void> {
    while (next) {
      inSync = next;
      next = null;
      try {
        await sync();
        tell(inSync.finished);
        for (const { job, result } of inSync.finished) job.resolve(result);
        inSync.synced.resolve();
      } catch (error) {
        broken = error;
        for (const { job } of [
          ...inSync.finished,
          ...[...waiting.splice(0), ...notes.splice(0)].map((job) => ({ job })),
        ]) {
          job.reject(error);
        }
        inSync.synced.reject(error);
      }
    }
    inSync = null;
  }

  /** What is on disk is written, whatever becomes of telling it. */
  function tell(finished: Batch["finished"]): void {
    try {
      committed(finished.flatMap(({ job }) => job.changes));
    } catch {
      // The listener's own affair.
    }
  }

  const enter = (unit: Unit, durable: boolean): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (broken) throw broken;
      if (closed) throw new Error("the store is closed");
      (durable ? waiting : notes).push({ unit, durable, changes: [], resolve, reject });
      if (!durable) noted?.resolve();
      if (!working) void work();
    });

  return {
    write: (unit) => enter(unit, true),
    note: (unit) => enter(unit, false),
    settled: () => (broken ? Promise.reject(broken) : (next ?? inSync)?.synced.promise),
    written: () => written,
    close: async () => {
      closed = true;
      while (working) await new Promise<void>((resolve) => setImmediate(resolve));
      await inSync?.synced.promise.catch(() => {});
    },
    pause: async (task) => {
      while (paused) await paused;
      const over = Promise.withResolvers<void>();
      paused = over.promise;
      try {
        await transaction;
        await task();
      } finally {
        paused = null;
        over.resolve();
      }
    },
  };
}
