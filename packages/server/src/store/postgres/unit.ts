import type { Change } from "../../changes/change.ts";
import type { Awaitable } from "../awaitable.ts";
import {
  checkOwned,
  type Encoded,
  effectOf,
  type IndexedMessage,
  notStated,
  type OwnedTable,
  type Place,
  type Sql,
  type Statement,
  type Value,
} from "../sql.ts";
import type { ReadTx, WriteTx } from "../store.ts";
import type { Rows } from "./connection.ts";
import { reindex } from "./search.ts";
import { type Batch, textList, type UnitRun } from "./transaction.ts";

const textOf = (sql: Statement) => (typeof sql === "string" ? sql : sql.postgres);

/** The port for a call of a method, in a unit that runs. */
export class Unit implements Sql {
  private readonly run: UnitRun;
  /** Whether the method has stated what it changes. */
  private isStated = false;

  constructor(run: UnitRun) {
    this.run = run;
  }

  /** The port for another call of a method in the same unit. */
  next(): Unit {
    return new Unit(this.run);
  }

  all<Row>(sql: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    return this.run.transaction.run<Row>(this.run, textOf(sql), values);
  }

  async get<Row>(sql: Statement, values: readonly unknown[] = []): Promise<Row | null> {
    return (await this.all<Row>(sql, values))[0] ?? null;
  }

  async change(sql: Statement, values: readonly unknown[] = []): Promise<number> {
    return (await this.write(sql, values)).count;
  }

  async changed<Row>(sql: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    const text = textOf(sql);
    if (effectOf(text) !== "named") return this.write<Row>(sql, values);
    const rows = await this.run.write<Row & { conversation_id: number }>(text, values);
    for (const { conversation_id } of rows) this.changes(conversation_id);
    return rows;
  }

  /** Runs a statement that changes something, and returns the rows of RETURNING with their count. */
  async write<Row = never>(sql: Statement, values: readonly unknown[] = []): Promise<Rows<Row>> {
    const text = textOf(sql);
    this.check(text);
    return this.run.write<Row>(text, values);
  }

  /** Makes a call in one statement with the calls of other units at the same time. */
  together<Each, Result>(batch: Batch<Each, Result>, call: Each): Promise<Result> {
    if (batch.writes) this.check(batch.sql);
    return this.run.together(batch, call);
  }

  private check(sql: string): void {
    if (!this.isStated && effectOf(sql) !== "other") throw notStated(sql);
  }

  own(conversationId: number): Awaitable<void> {
    this.isStated = true;
    return this.run.transaction.own(this.run, "counters", conversationId);
  }

  async getOwned(place: string, sql: string, value: Value, also?: OwnedTable) {
    if (this.run.transaction.options.readOnly) return this.get<Place>(sql, [value]);
    // Owned first: what is read before may be outdated by the time the unit owns the conversation.
    const found = await this.get<Place>(place, [value]);
    if (!found) return null;
    await this.own(found.conversation_id);
    if (also) await this.ownRow(also, Number(value));
    return this.get<Place>(sql, [value]);
  }

  async ownFree(conversationIds: readonly number[]): Promise<number[]> {
    this.isStated = true;
    const own = (id: number) => this.run.transaction.ownFree(this.run, "counters", id);
    const owned = await Promise.all(conversationIds.map(own));
    return conversationIds.filter((_, place) => owned[place]);
  }

  changes(conversationId: number): void {
    this.isStated = true;
    checkOwned(this.run.owned.has(`counters:${conversationId}`), conversationId);
  }

  changesUnowned(): void {
    this.isStated = true;
  }

  ownRow(table: OwnedTable, id: number): Awaitable<void> {
    return this.run.transaction.own(this.run, table, id);
  }

  index(message: IndexedMessage, text: string | null): Promise<void> {
    return reindex(this, message, text);
  }

  list(values: readonly (number | string | null)[]): string {
    return textList(values);
  }

  json(value: object): Encoded;
  json(value: object | null | undefined): Encoded | null;
  json(value: object | null | undefined): Encoded | null {
    return (value ?? null) as Encoded | null;
  }

  /** Hands a change to subscribers once the unit has committed. */
  emit(change: Change): void {
    this.run.emitted.push(change);
  }
}

type Method = (...values: never[]) => unknown;

/** Methods of the store's interface that take the unit as their first argument. */
export type Methods<Names extends keyof WriteTx> = {
  [Name in Names]: WriteTx[Name] extends (...values: infer Values) => infer Result
    ? (unit: Unit, ...values: Values) => Awaitable<Awaited<Result>>
    : never;
};

export type ReadMethods = Methods<keyof ReadTx>;
export type WriteMethods = Methods<Exclude<keyof WriteTx, "emit" | "signal">>;

/** Returns a function that makes the `tx` of a unit: the methods with the unit as first argument. */
export function binder<Tx>(methods: object): (unit: Unit) => Tx {
  class Bound {
    readonly unit: Unit;
    constructor(unit: Unit) {
      this.unit = unit;
    }
  }
  for (const [name, method] of Object.entries(methods)) {
    const call = method as (unit: Unit, ...values: never[]) => unknown;
    const bound: Method = function (this: Bound, ...values: never[]) {
      return call(this.unit.next(), ...values);
    };
    Object.defineProperty(Bound.prototype, name, { value: bound });
  }
  return (unit) => new Bound(unit) as Tx;
}
