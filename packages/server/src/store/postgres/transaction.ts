import type { Change } from "../../changes/change.ts";
import type { Awaitable } from "../awaitable.ts";
import type { Effect, OwnedTable } from "../sql.ts";
import { aborted, type Connection, type Rows } from "./connection.ts";

/**
 * The rows that a unit can own: a conversation (its row of counters), a turn, an account and the
 * counter of names. Locks are taken in this order.
 */
type Table = "counters" | OwnedTable;
const KEYS: Record<Table, string> = {
  counters: "conversation_id",
  turns: "id",
  accounts: "id",
  name_counter: "id",
};

/** Another transaction has locked a row that a unit needs: the unit starts over and waits for it. */
export class Conflict extends Error {
  override name = "Conflict";
  readonly key: string;
  constructor(key: string) {
    super(`${key} is locked by another transaction`);
    this.key = key;
  }
}

/** The text of a statement, with `$1` for its first value. */
export interface Prepared {
  readonly text: string;
  readonly effect: Effect;
}

/** One statement for many calls. */
export interface Batch<Call, Result> {
  readonly statement: Prepared;
  /** Whether it changes something. */
  readonly writes: boolean;
  readonly values: (calls: readonly Call[]) => unknown[];
  /** The results of the calls, in their order. */
  readonly results: (rows: readonly never[], calls: readonly Call[]) => Result[];
}

export interface TransactionOptions {
  /** The statement that begins the transaction. */
  readonly begin: string;
  /** Units that only read own nothing. */
  readonly readOnly?: boolean;
  /** The keys of rows to lock before anything else. The transaction waits for these locks. */
  readonly lockFirst?: readonly string[];
  /** Whether other units of this node wait for the row. They get it first. */
  readonly isWanted?: (key: string) => boolean;
}

interface LockRequest {
  readonly table: Table;
  readonly id: number;
  readonly key: string;
}

/** Rows that are locked by the same statements. Resolves to the keys of those that could be locked. */
interface LockBatch {
  readonly requests: LockRequest[];
  readonly locked: PromiseWithResolvers<ReadonlySet<string>>;
}

interface BatchedCall {
  readonly call: unknown;
  readonly run: UnitRun;
  readonly answer: PromiseWithResolvers<unknown>;
}

/**
 * Runs several units concurrently in one transaction. Statements of the same iteration of the event loop
 * share a round trip, and calls of the same batch share a statement. One unit at a time owns a row,
 * so units that need the same row take effect one after another.
 */
export class Transaction {
  private readonly connection: Connection;
  readonly options: TransactionOptions;
  /** The batch that locks, or has locked, a row, by key. */
  private readonly locks = new Map<string, LockBatch>();
  private readonly owners = new Map<string, UnitRun>();
  /** Units that wait until another one has released a row, by key. */
  private readonly queues = new Map<string, { run: UnitRun; granted: () => void }[]>();
  private lockBatch: LockBatch | null = null;
  private batches = new Map<Batch<never, unknown>, BatchedCall[]>();
  private isFlushScheduled = false;
  private readonly begun: Promise<void>;
  /**
   * The first statement that failed, after which PostgreSQL rejects all others, and its unit. The
   * unit is null if the statement was not of one unit.
   */
  failed: { error: unknown; run: UnitRun | null } | null = null;
  /** Units that succeeded, in the order in which they took effect. */
  readonly finished: UnitRun[] = [];

  constructor(connection: Connection, options: TransactionOptions) {
    this.connection = connection;
    this.options = options;
    // Statements that are sent together may run in another order, so the others wait for this one.
    this.begun = connection.run(options.begin).then(
      () => {},
      (error) => {
        this.failed ??= { error, run: null };
      },
    );
    this.lockFirst(options.lockFirst ?? []);
  }

  async run<Row>(run: UnitRun | null, sql: string, values?: readonly unknown[]) {
    await this.begun;
    if (this.failed) throw this.failed.error;
    try {
      return await this.connection.run<Row>(sql, values);
    } catch (error) {
      if (!aborted(error)) this.failed ??= { error, run };
      throw error;
    }
  }

  /** Makes a unit own a row: waits for the lock, and for other units of this transaction. */
  own(run: UnitRun, table: Table, id: number): Awaitable<void> {
    if (this.options.readOnly) return;
    const key = `${table}:${id}`;
    if (run.owned.has(key)) return;
    const begun = run.owning.get(key);
    if (begun) return begun;
    const owning = this.lockAndOwn(run, table, id, key);
    run.owning.set(key, owning);
    return owning;
  }

  private async lockAndOwn(run: UnitRun, table: Table, id: number, key: string): Promise<void> {
    const locked = await this.lock(table, id, key);
    if (!locked.has(key) || run.hasEnded) throw new Conflict(key);
    const owner = this.owners.get(key);
    if (owner && owner !== run) await this.waitForOwner(run, key, owner);
    else this.setOwner(run, key);
  }

  /** Makes a unit own a row if no other unit owns it now. Returns whether it does. */
  async ownFree(run: UnitRun, table: Table, id: number): Promise<boolean> {
    const key = `${table}:${id}`;
    if (run.owned.has(key)) return true;
    if (!(await this.lock(table, id, key)).has(key)) return false;
    if (run.hasEnded || (this.owners.get(key) ?? run) !== run) return false;
    this.setOwner(run, key);
    return true;
  }

  private setOwner(run: UnitRun, key: string): void {
    this.owners.set(key, run);
    run.owned.add(key);
  }

  /** Passes the rows that a unit owns on to the next units that wait for them. */
  release(run: UnitRun): void {
    run.hasEnded = true;
    for (const key of run.owned) {
      const queue = this.queues.get(key);
      let next = queue?.shift();
      // A unit that waited for several rows at once may have failed at another one.
      while (next?.run.hasEnded) next = queue?.shift();
      if (!next) {
        this.owners.delete(key);
        continue;
      }
      this.setOwner(next.run, key);
      next.granted();
    }
  }

  together<Call, Result>(run: UnitRun, batch: Batch<Call, Result>, call: Call): Promise<Result> {
    const answer = Promise.withResolvers<unknown>();
    const calls = this.batches.get(batch as never) ?? [];
    this.batches.set(batch as never, calls);
    calls.push({ call, run, answer });
    this.scheduleFlush();
    return answer.promise as Promise<Result>;
  }

  private lockFirst(keys: readonly string[]): void {
    if (keys.length === 0) return;
    const batch = newLockBatch();
    for (const key of keys) {
      const [table, id] = key.split(":") as [Table, string];
      this.locks.set(key, batch);
      batch.requests.push({ table, id: Number(id), key });
    }
    void this.lockRows(batch, "FOR UPDATE");
  }

  private lock(table: Table, id: number, key: string): Promise<ReadonlySet<string>> {
    const known = this.locks.get(key);
    if (known) return known.locked.promise;
    if (this.options.isWanted?.(key)) return NOTHING_LOCKED;
    this.lockBatch ??= newLockBatch();
    this.locks.set(key, this.lockBatch);
    this.lockBatch.requests.push({ table, id, key });
    this.scheduleFlush();
    return this.lockBatch.locked.promise;
  }

  /** Waits until the owner releases a row. Throws a `Conflict` where that would be a deadlock. */
  private waitForOwner(run: UnitRun, key: string, owner: UnitRun): Promise<void> {
    if (this.isWaitingFor(owner, run)) throw new Conflict(key);
    run.waitsFor.add(key);
    return new Promise<void>((resolve) => {
      const queue = this.queues.get(key) ?? [];
      this.queues.set(key, queue);
      const granted = () => {
        run.waitsFor.delete(key);
        resolve();
      };
      queue.push({ run, granted });
    });
  }

  /** Whether a unit is another one, or waits for it: directly, or for one that does. */
  private isWaitingFor(waiting: UnitRun, other: UnitRun, seen = new Set<UnitRun>()): boolean {
    if (waiting === other) return true;
    seen.add(waiting);
    return [...waiting.waitsFor].some((key) => {
      const owner = this.owners.get(key);
      return owner !== undefined && !seen.has(owner) && this.isWaitingFor(owner, other, seen);
    });
  }

  /** Lock requests and batched calls of the same iteration of the event loop are sent together. */
  private scheduleFlush(): void {
    if (this.isFlushScheduled) return;
    this.isFlushScheduled = true;
    setImmediate(() => {
      this.isFlushScheduled = false;
      const { lockBatch, batches } = this;
      this.lockBatch = null;
      this.batches = new Map();
      if (lockBatch) void this.lockRows(lockBatch, "FOR UPDATE SKIP LOCKED");
      for (const [batch, calls] of batches) void this.sendBatch(batch, calls);
    });
  }

  /** Locks rows in the same order in every transaction, so that no two wait for each other. */
  private async lockRows({ requests, locked }: LockBatch, mode: string): Promise<void> {
    const keys = new Set<string>();
    const statements = (Object.keys(KEYS) as Table[]).map(async (table) => {
      const ofTable = requests.filter((request) => request.table === table);
      if (ofTable.length > 0) await this.lockRowsOf(table, ofTable, mode, keys);
    });
    await Promise.all(statements);
    locked.resolve(keys);
  }

  private async lockRowsOf(
    table: Table,
    requests: readonly LockRequest[],
    mode: string,
    keys: Set<string>,
  ): Promise<void> {
    const column = KEYS[table];
    const sql = `SELECT ${column} AS id FROM ${table} WHERE ${column} = ANY($1::bigint[])
      ORDER BY ${column} ${mode}`;
    const values = [list(requests.map(({ id }) => id))];
    // `failed` keeps the error, and the next statement of every unit throws it.
    const locked = await this.run<{ id: number }>(null, sql, values).catch(() => []);
    const ids = new Set(locked.map(({ id }) => id));
    for (const { id, key } of requests) if (ids.has(id)) keys.add(key);
  }

  private async sendBatch(batch: Batch<never, unknown>, calls: BatchedCall[]): Promise<void> {
    const values = calls.map(({ call }) => call as never);
    try {
      const only = calls.length === 1 ? (calls[0] as BatchedCall).run : null;
      const rows = await this.run<never>(only, batch.statement.text, batch.values(values));
      const results = batch.results(rows, values);
      for (const [place, { answer }] of calls.entries()) answer.resolve(results[place]);
    } catch (error) {
      for (const { answer } of calls) answer.reject(error);
    }
  }
}

const NOTHING_LOCKED: Promise<ReadonlySet<string>> = Promise.resolve(new Set<string>());

const newLockBatch = (): LockBatch => ({ requests: [], locked: Promise.withResolvers() });

/** One run of a unit in a transaction. */
export class UnitRun {
  readonly owned = new Set<string>();
  /** What statements that need the same row at once wait for, by the key of the row. */
  readonly owning = new Map<string, Promise<void>>();
  /** The keys of the rows that it waits for while other units of the transaction own them. */
  readonly waitsFor = new Set<string>();
  /** Whether it has released what it owned. It gets nothing after that. */
  hasEnded = false;
  readonly emitted: Change[] = [];
  result: unknown;
  failure: { error: unknown } | null = null;
  readonly transaction: Transaction;
  private hasWritten = false;
  /** Number of statements that may change something and have not ended. */
  private writing = 0;

  constructor(transaction: Transaction) {
    this.transaction = transaction;
  }

  /** Whether it has changed something, or may still do so. */
  get wrote(): boolean {
    return this.hasWritten || this.writing > 0;
  }

  async perform(work: () => unknown): Promise<void> {
    try {
      this.result = await work();
      this.transaction.finished.push(this);
    } catch (error) {
      this.failure = { error };
    } finally {
      this.transaction.release(this);
    }
  }

  async write<Row>(sql: string, values: readonly unknown[]): Promise<Rows<Row>> {
    this.writing++;
    const rows = await this.transaction.run<Row>(this, sql, values);
    this.writing--;
    // A statement of several parts may have changed something in another one than the last.
    this.hasWritten ||= rows.count > 0 || /^\s*WITH\b/.test(sql);
    return rows;
  }

  together<Call, Result>(batch: Batch<Call, Result>, call: Call): Promise<Result> {
    this.hasWritten ||= batch.writes;
    return this.transaction.together(this, batch, call);
  }
}

/** An array of ids or UUIDs as a PostgreSQL literal. */
export const list = (values: readonly (number | string)[]) => `{${values.join(",")}}`;

/** An array of any texts as a PostgreSQL literal. */
export const textList = (values: readonly (number | string | null)[]) =>
  list(values.map(quotedText));

const quotedText = (value: number | string | null) =>
  typeof value === "string" ? `"${value.replace(/["\\]/g, "\\$&")}"` : (value ?? "NULL");
