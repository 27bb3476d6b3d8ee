import type { Change } from "../../changes/change.ts";
import type { Awaitable } from "../awaitable.ts";
import type { Cursor } from "../changes.ts";
import { Unavailable } from "../store.ts";
import { type Connection, type Connections, conflicting } from "./connection.ts";
import { Conflict, Transaction, type TransactionOptions, UnitRun } from "./transaction.ts";
import type { Unit } from "./unit.ts";

/** Units that may share one transaction: enough to share its cost, few enough to stay short. */
const BATCH_SIZE = 128;
/** How long a unit is tried again while the database is away or others are in its way. */
const PATIENCE_MS = 3000;
const PAUSE_MS = 50;

type Work = (unit: Unit) => Awaitable<unknown>;

interface Job {
  readonly work: Work;
  /** Until when it may be tried again. */
  readonly deadline: number;
  conflicts: number;
  /** What it is known to need for itself. */
  readonly keys: Set<string>;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

export interface Lane {
  enter(work: Work): Promise<unknown>;
  /** Refuses what comes from now on, and resolves once all that came before is done. */
  close(): Promise<void>;
}

/** Units that only read: those that wait share one view of the data. */
export function readLane(connections: Connections): Lane {
  const begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
  const queue = newQueue(
    (jobs) =>
      new Promise((taken, failed) => {
        const group = async (connection: Connection) => {
          taken();
          const transaction = new Transaction(connection, { begin, readOnly: true });
          await Promise.all(jobs.map((job) => read(transaction, job)));
          await connection.run(transaction.refused ? "ROLLBACK" : "COMMIT").catch(() => {});
        };
        connections.use(group).catch(failed);
      }),
  );

  async function read(transaction: Transaction, job: Job): Promise<void> {
    const run = new UnitRun(transaction);
    await run.perform(job.work);
    const { refused } = transaction;
    if (!run.failure) job.resolve(run.result);
    else if (!refused) job.reject(run.failure.error);
    else if (refused.error instanceof Unavailable || refused.run === run) {
      queue.retry(job, refused.error);
    } else queue.again([job]);
  }

  return {
    enter: queue.enter,
    close: async () => {
      await queue.close();
      await connections.close();
    },
  };
}

/** The commits under way, by what their transactions hold. */
export interface CommitOrder {
  /** Takes a place after all that hold one of the keys. To be called before COMMIT is sent. */
  enter(keys: ReadonlySet<string>): { earlierLeft: Promise<unknown>; leave(): void };
}

/**
 * Lets transactions that held the same row hand over their changes in the order in which they
 * had it. PostgreSQL gives up a transaction's locks before it answers the COMMIT, so the next one to
 * hold the row, on another connection, may have its answer first.
 */
export function commitOrder(): CommitOrder {
  const last = new Map<string, Promise<void>>();
  return {
    enter(keys) {
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

export interface WriteOptions {
  /** For one group at a time; the next begins while the last ones are being committed. */
  readonly connections: Connections;
  /** For units that have to wait for others. */
  readonly patientConnections: Connections;
  /** The statement every transaction begins with. */
  readonly begin: string;
  /** Shared by the lanes that write to one database. */
  readonly order: CommitOrder;
  /**
   * Writes the changes of the units to the log, as the last statement before COMMIT. Resolves to the
   * entry; null when there are no changes.
   */
  log(connection: Connection, units: readonly UnitRun[]): Promise<Cursor | null>;
  /** Whether an entry was committed. Asked when the connection broke during COMMIT. */
  wasCommitted(entry: Cursor): Promise<boolean>;
  committed(changes: readonly Change[]): void;
}

/**
 * Units that write. They run in the order in which they came, many in one transaction, and never
 * wait for what another transaction holds: a unit that would is moved to where waiting is all there
 * is to do, and those that come after it for the same conversation follow it there.
 */
export function writeLane(options: WriteOptions): Lane {
  const waiting = new Map<string, Job[]>();
  const isWanted = (key: string) => waiting.has(key);
  const queue = newQueue((jobs) => group(jobs, options.connections, { isWanted }));

  /** Resolves once the units have run; committing goes on by itself. */
  function group(
    jobs: Job[],
    connections: Connections,
    rules: Omit<TransactionOptions, "begin">,
  ): Promise<void> {
    return new Promise((executed, failed) => {
      const work = async (connection: Connection) => {
        const transaction = new Transaction(connection, { begin: options.begin, ...rules });
        const runs = jobs.map((job) => ({ job, run: new UnitRun(transaction) }));
        await Promise.all(runs.map(({ job, run }) => run.perform(job.work)));
        const { refused } = transaction;
        if (refused?.error instanceof Unavailable) throw refused.error;
        const undone = refused !== null || runs.some(({ run }) => run.failure && run.wrote);
        if (undone) await connection.run("ROLLBACK");
        sortOut(runs, transaction, undone);
        executed();
        if (!undone) await commit(connection, transaction, runs);
      };
      connections.use(work).catch(failed);
    });
  }

  /** Answers the units that failed by themselves; those that are not to blame run again. */
  function sortOut(runs: readonly Running[], { refused }: Transaction, undone: boolean): void {
    const again: Job[] = [];
    for (const { run, job } of runs) {
      const error = run.failure?.error;
      const blamed = refused && run.failure && (refused.run === run || refused.run === null);
      if (error instanceof Conflict) wait(job, [...run.owned, error.key]);
      else if (blamed && (refused.run === run || runs.length === 1)) {
        queue.retry(job, refused.error);
      } else if (blamed) {
        // Whoever it was is found out when each runs without company.
        job.conflicts++;
        again.push(job);
      } else if (refused) again.push(job);
      else if (run.failure) job.reject(error);
      else if (undone) again.push(job);
    }
    queue.again(again);
  }

  async function commit(
    connection: Connection,
    { finished }: Transaction,
    runs: readonly Running[],
  ): Promise<void> {
    const changes = finished.flatMap((run) => run.changes);
    const jobs = new Map(runs.map(({ run, job }) => [run, job]));
    const place = options.order.enter(new Set(finished.flatMap((run) => [...run.owned])));
    let entry: Cursor | null = null;
    try {
      entry = await options.log(connection, finished);
      const { command } = await connection.run("COMMIT");
      // A transaction that was refused something ends, without an error, by being undone.
      if (command !== "COMMIT") throw new Error("the transaction was undone");
    } catch (error) {
      for (const run of finished) {
        // What was being committed when the link broke may be there or not: only the caller can tell.
        if (error instanceof Unavailable) jobs.get(run)?.reject(error);
        else queue.retry(jobs.get(run) as Job, error);
      }
      place.leave();
      if (entry !== null && error instanceof Unavailable) void announceIfCommitted(entry, changes);
      return;
    }
    await place.earlierLeft;
    announce(changes);
    place.leave();
    for (const run of finished) jobs.get(run)?.resolve(run.result);
  }

  /** This node skips its own entries when it reads the log, so nothing else would deliver them here. */
  async function announceIfCommitted(entry: Cursor, changes: readonly Change[]): Promise<void> {
    if (await options.wasCommitted(entry)) announce(changes);
  }

  function announce(changes: readonly Change[]): void {
    try {
      options.committed(changes);
    } catch (error) {
      // The listener reports its own errors. One that it missed does not fail committed units.
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }

  /** Moves a unit to where it waits for the last of the keys it needs. */
  function wait(job: Job, needed: readonly string[]): void {
    for (const each of needed) job.keys.add(each);
    const key = needed.at(-1) as string;
    if (Date.now() > job.deadline + PATIENCE_MS) {
      job.reject(new Unavailable("too many changes at once"));
      return;
    }
    const others = waiting.get(key);
    if (others) {
      others.push(job);
      return;
    }
    const jobs = [job];
    waiting.set(key, jobs);
    void runWaiting(key, jobs);
  }

  /** Runs what waits for a key, once this node has its turn there and wherever else it needs to. */
  async function runWaiting(key: string, jobs: Job[]): Promise<void> {
    while (jobs.length > 0) {
      const some = jobs.splice(0, BATCH_SIZE);
      const first = [...new Set(some.flatMap((job) => [...job.keys]))];
      try {
        await group(some, options.patientConnections, { first });
      } catch (error) {
        for (const job of some) queue.retry(job, error);
      }
    }
    waiting.delete(key);
  }

  return {
    enter: queue.enter,
    close: async () => {
      await queue.close();
      await options.connections.close();
      await options.patientConnections.close();
    },
  };
}

interface Running {
  readonly job: Job;
  readonly run: UnitRun;
}

/** Takes what waits in groups, one after another; `perform` resolves when the next may begin. */
function newQueue(perform: (jobs: Job[]) => Promise<void>) {
  const jobs: Job[] = [];
  let working = false;
  let closed = false;
  /** Units that were taken up and are not answered yet. */
  let open = 0;

  async function work(): Promise<void> {
    working = true;
    while (jobs.length > 0) {
      // Everything that arrives in the same turn of the event loop shares a group.
      await new Promise<void>((resolve) => setImmediate(resolve));
      const group = jobs.splice(0, (jobs[0] as Job).conflicts > 0 ? 1 : BATCH_SIZE);
      try {
        await perform(group);
      } catch (error) {
        for (const job of group) retry(job, error);
      }
    }
    working = false;
  }

  function again(some: readonly Job[]): void {
    jobs.unshift(...some);
    if (!working && jobs.length > 0) void work();
  }

  /** Runs a unit again if what it failed of may pass; otherwise that is its answer. */
  function retry(job: Job, error: unknown): void {
    const passing = error instanceof Unavailable || conflicting(error);
    if (!passing) job.reject(error);
    else if (Date.now() < job.deadline) {
      if (conflicting(error)) job.conflicts++;
      setTimeout(() => again([job]), error instanceof Unavailable ? PAUSE_MS : 0);
    } else if (error instanceof Unavailable) job.reject(error);
    else job.reject(new Unavailable("too many changes at once"));
  }

  return {
    enter: (work: Work): Promise<unknown> => {
      if (closed) return Promise.reject(new Error("the store is closed"));
      open++;
      const job = Promise.withResolvers<unknown>();
      const { resolve, reject } = job;
      jobs.push({
        work,
        deadline: Date.now() + PATIENCE_MS,
        conflicts: 0,
        keys: new Set(),
        resolve,
        reject,
      });
      again([]);
      return job.promise.finally(() => open--);
    },
    again,
    retry,
    close: async () => {
      closed = true;
      while (open > 0) await Bun.sleep(1);
    },
  };
}
