import type { Change } from "../../changes/change.ts";
import { aborted, type Connection, type Rows } from "./connection.ts";
import { type Batch, list, type Unit } from "./unit.ts";

/**
 * What a unit may have for itself: a conversation (its row of counters), a turn, an account, the
 * counter of names. Locks are taken in this order.
 */
type Table = "counters" | "turns" | "accounts" | "name_counter";
const KEYS: Record<Table, string> = {
  counters: "conversation_id",
  turns: "id",
  accounts: "id",
  name_counter: "id",
};

/** Another transaction holds what a unit needs: the unit has to begin again, and wait for it. */
export class Conflict extends Error {
  override name = "Conflict";
  readonly key: string;
  constructor(key: string) {
    super(`${key} is held by another transaction`);
    this.key = key;
  }
}

export interface TransactionOptions {
  /** The statement it begins with. */
  readonly begin: string;
  /** Whether it changes nothing, and so needs nothing for itself. */
  readonly readOnly?: boolean;
  /** What it has to hold before anything else, and waits for if need be. */
  readonly first?: readonly string[];
  /** What others of this node are waiting for, and are to get first. */
  readonly isWanted?: (key: string) => boolean;
}

interface Batched {
  call: unknown;
  run: UnitRun;
  answer: PromiseWithResolvers<unknown>;
}

/**
 * Several units inside one transaction, side by side: what they ask in the same moment shares a
 * round trip, and some of it a statement. Each conversation belongs to one of them at a time, so
 * that they take effect one after another wherever they meet.
 */
export class Transaction {
  private readonly connection: Connection;
  private readonly options: TransactionOptions;
  private readonly locks = new Map<string, Promise<boolean>>();
  private readonly owners = new Map<string, UnitRun>();
  private readonly queues = new Map<string, { run: UnitRun; granted: () => void }[]>();
  private asked: { table: Table; id: number; key: string; got: (locked: boolean) => void }[] = [];
  private batches = new Map<Batch<never, unknown>, Batched[]>();
  private flushing = false;
  private readonly begun: Promise<void>;
  /** The first statement that the server refused, which undoes them all, and whose it was. */
  refused: { error: unknown; run: UnitRun | null } | null = null;
  /** Units that came to their end, in the order in which they took effect. */
  readonly finished: UnitRun[] = [];

  constructor(connection: Connection, options: TransactionOptions) {
    this.connection = connection;
    this.options = options;
    // Statements that leave together are mostly, but not certainly, taken in their order: what has
    // to come before others is waited for.
    this.begun = connection.run(options.begin).then(
      () => {},
      (error) => {
        this.refused ??= { error, run: null };
      },
    );
    this.hold(options.first ?? []);
  }

  /** Takes locks in one order everywhere: so no two transactions ever wait for each other. */
  private hold(keys: readonly string[]): void {
    const wanted = keys.map((key) => {
      const [table, id] = key.split(":") as [Table, string];
      const lock = Promise.withResolvers<boolean>();
      this.locks.set(key, lock.promise);
      return { table, id: Number(id), key, got: lock.resolve };
    });
    for (const table of Object.keys(KEYS) as Table[]) {
      this.take(
        table,
        wanted.filter((one) => one.table === table),
        "",
      );
    }
  }

  async run<Row>(run: UnitRun | null, sql: string, values?: unknown[]): Promise<Rows<Row>> {
    await this.begun;
    if (this.refused) throw this.refused.error;
    try {
      return await this.connection.run<Row>(sql, values);
    } catch (error) {
      if (!aborted(error)) this.refused ??= { error, run };
      throw error;
    }
  }

  /** Has a unit own something, once this transaction holds it and no other unit here needs it. */
  async own(run: UnitRun, table: Table, id: number): Promise<void> {
    if (this.options.readOnly) return;
    const key = `${table}:${id}`;
    if (run.owned.has(key)) return;
    if (!(await this.lock(table, id, key))) throw new Conflict(key);
    const owner = this.owners.get(key);
    if (owner) await this.queue(run, key, owner);
    this.owners.set(key, run);
    run.owned.add(key);
  }

  /** Whether a unit owns something now, without waiting for anybody. */
  async ownFree(run: UnitRun, table: Table, id: number): Promise<boolean> {
    const key = `${table}:${id}`;
    if (run.owned.has(key)) return true;
    if (!(await this.lock(table, id, key))) return false;
    if ((this.owners.get(key) ?? run) !== run) return false;
    this.owners.set(key, run);
    run.owned.add(key);
    return true;
  }

  private lock(table: Table, id: number, key: string): Promise<boolean> {
    const known = this.locks.get(key);
    if (known) return known;
    if (this.options.isWanted?.(key)) return Promise.resolve(false);
    const lock = new Promise<boolean>((got) => {
      this.asked.push({ table, id, key, got });
    });
    this.locks.set(key, lock);
    this.soon();
    return lock;
  }

  /** Two that wait for each other would wait for ever: the later one gives way. */
  private queue(run: UnitRun, key: string, owner: UnitRun): Promise<void> {
    for (let next: UnitRun | undefined = owner; next; ) {
      if (next === run) throw new Conflict(key);
      next = next.waitsFor === null ? undefined : this.owners.get(next.waitsFor);
    }
    run.waitsFor = key;
    return new Promise<void>((resolve) => {
      const queue = this.queues.get(key) ?? [];
      this.queues.set(key, queue);
      const granted = () => {
        run.waitsFor = null;
        resolve();
      };
      queue.push({ run, granted });
    });
  }

  release(run: UnitRun): void {
    for (const key of run.owned) {
      const next = this.queues.get(key)?.shift();
      if (!next) {
        this.owners.delete(key);
        continue;
      }
      this.owners.set(key, next.run);
      next.granted();
    }
  }

  together<Call, Result>(run: UnitRun, batch: Batch<Call, Result>, call: Call): Promise<Result> {
    const answer = Promise.withResolvers<unknown>();
    const same = this.batches.get(batch as never) ?? [];
    this.batches.set(batch as never, same);
    same.push({ call, run, answer });
    this.soon();
    return answer.promise as Promise<Result>;
  }

  /** All that is asked in the same turn of the event loop is sent together. */
  private soon(): void {
    if (this.flushing) return;
    this.flushing = true;
    setImmediate(() => {
      this.flushing = false;
      const { asked, batches } = this;
      this.asked = [];
      this.batches = new Map();
      for (const table of Object.keys(KEYS) as Table[]) {
        this.take(
          table,
          asked.filter((one) => one.table === table),
          " SKIP LOCKED",
        );
      }
      for (const [batch, calls] of batches) void this.send(batch, calls);
    });
  }

  private take(table: Table, wanted: Transaction["asked"], skip: string): void {
    if (wanted.length === 0) return;
    const id = KEYS[table];
    this.run<{ id: number }>(
      null,
      `SELECT ${id} AS id FROM ${table} WHERE ${id} = ANY($1::bigint[]) ORDER BY ${id} FOR UPDATE${skip}`,
      [list(wanted.map((one) => one.id))],
    ).then(
      (rows) => {
        const held = new Set(rows.map((row) => row.id));
        for (const one of wanted) one.got(held.has(one.id));
      },
      () => {
        for (const one of wanted) one.got(false);
      },
    );
  }

  private async send(batch: Batch<never, unknown>, calls: Batched[]): Promise<void> {
    const values = calls.map(({ call }) => call as never);
    try {
      const only = calls.length === 1 ? (calls[0] as Batched).run : null;
      const rows = await this.run<never>(only, batch.sql, batch.values(values));
      const results = batch.results(rows, values);
      for (const [place, { answer }] of calls.entries()) answer.resolve(results[place]);
    } catch (error) {
      for (const { answer } of calls) answer.reject(error);
    }
  }
}

/** One unit's run inside a transaction. */
export class UnitRun implements Unit {
  readonly owned = new Set<string>();
  /** What it waits for while another unit of the transaction owns it. */
  waitsFor: string | null = null;
  wrote = false;
  readonly changes: Change[] = [];
  result: unknown;
  failure: { error: unknown } | null = null;
  private readonly transaction: Transaction;

  constructor(transaction: Transaction) {
    this.transaction = transaction;
  }

  async perform(work: (unit: Unit) => unknown): Promise<void> {
    try {
      this.result = await work(this);
      this.transaction.finished.push(this);
    } catch (error) {
      this.failure = { error };
    } finally {
      this.transaction.release(this);
    }
  }

  all<Row>(sql: string, ...values: unknown[]): Promise<Row[]> {
    return this.transaction.run<Row>(this, sql, values);
  }

  async get<Row>(sql: string, ...values: unknown[]): Promise<Row | null> {
    return (await this.transaction.run<Row>(this, sql, values))[0] ?? null;
  }

  change<Row = never>(sql: string, ...values: unknown[]): Promise<Rows<Row>> {
    this.wrote = true;
    return this.transaction.run<Row>(this, sql, values);
  }

  together<Call, Result>(batch: Batch<Call, Result>, call: Call): Promise<Result> {
    this.wrote ||= batch.writes;
    return this.transaction.together(this, batch, call);
  }

  own(conversationId: number): Promise<void> {
    return this.transaction.own(this, "counters", conversationId);
  }

  ownRow(table: Exclude<Table, "counters">, id: number): Promise<void> {
    return this.transaction.own(this, table, id);
  }

  async ownFree(conversationIds: readonly number[]): Promise<number[]> {
    const own = (id: number) => this.transaction.ownFree(this, "counters", id);
    const owned = await Promise.all(conversationIds.map(own));
    return conversationIds.filter((_, place) => owned[place]);
  }

  emit(change: Change): void {
    this.changes.push(change);
  }
}
