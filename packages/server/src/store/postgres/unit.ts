import type { Change } from "../../changes/change.ts";
import type { Awaitable } from "../awaitable.ts";
import {
  checkOwned,
  effectOf,
  type Fragment,
  type IndexedMessage,
  Json,
  notStated,
  type OwnedTable,
  type Place,
  preparing,
  Sql,
  sql,
  type Template,
} from "../sql.ts";
import type { ReadTx, WriteTx } from "../store.ts";
import type { Rows } from "./connection.ts";
import { reindex } from "./search.ts";
import { type Batch, type Prepared, textList, type UnitRun } from "./transaction.ts";

const prepare = preparing<Prepared>({
  name: "postgres",
  encode: (value) => (value instanceof Json ? value.value : textList(value)),
  prepare: (text) => ({ text, effect: effectOf(text) }),
});

/** Prepares a statement whose values are passed by their places, `$1` for the first. */
export const prepared = (statement: Fragment): Prepared => prepare(statement, []);

/** The port for a call of a method, in a unit that runs. */
export class Unit extends Sql {
  private readonly run: UnitRun;
  /** Whether the method has stated what it changes. */
  private isStated = false;

  constructor(run: UnitRun) {
    super();
    this.run = run;
  }

  /** The port for another call of a method in the same unit. */
  next(): Unit {
    return new Unit(this.run);
  }

  override all<Row>(...template: Template): Promise<Row[]> {
    const values: unknown[] = [];
    const { text } = prepare(sql(...template), values);
    return this.run.transaction.run<Row>(this.run, text, values);
  }

  override async get<Row>(...template: Template): Promise<Row | null> {
    return (await this.all<Row>(...template))[0] ?? null;
  }

  override async change(...template: Template): Promise<number> {
    return (await this.write(...template)).count;
  }

  override async changed<Row>(...template: Template): Promise<Row[]> {
    const values: unknown[] = [];
    const prepared = prepare(sql(...template), values);
    if (prepared.effect === "conversation") this.check(prepared);
    const rows = await this.run.write<Row & Place>(prepared.text, values);
    if (prepared.effect === "named") for (const row of rows) this.changes(row.conversation_id);
    return rows;
  }

  /** Runs a statement that changes something, and returns the rows of RETURNING with their count. */
  async write<Row = never>(...template: Template): Promise<Rows<Row>> {
    const values: unknown[] = [];
    const prepared = prepare(sql(...template), values);
    this.check(prepared);
    return this.run.write<Row>(prepared.text, values);
  }

  /** Makes a call in one statement with the calls of other units at the same time. */
  together<Each, Result>(batch: Batch<Each, Result>, call: Each): Promise<Result> {
    if (batch.writes) this.check(batch.statement);
    return this.run.together(batch, call);
  }

  private check({ text, effect }: Prepared): void {
    if (!this.isStated && effect !== "other") throw notStated(text);
  }

  override own(conversationId: number): Awaitable<void> {
    this.isStated = true;
    return this.run.transaction.own(this.run, "counters", conversationId);
  }

  override async getOwned(place: Fragment, row: Fragment, turnId?: number): Promise<Place | null> {
    if (this.run.transaction.options.readOnly) return this.get<Place>`${row}`;
    // Owned first: what is read before may be outdated by the time the unit owns the conversation.
    const found = await this.get<Place>`${place}`;
    if (!found) return null;
    await this.own(found.conversation_id);
    if (turnId !== undefined) await this.ownRow("turns", turnId);
    return this.get<Place>`${row}`;
  }

  override async ownFree(conversationIds: readonly number[]): Promise<number[]> {
    this.isStated = true;
    const own = (id: number) => this.run.transaction.ownFree(this.run, "counters", id);
    const owned = await Promise.all(conversationIds.map(own));
    return conversationIds.filter((_, place) => owned[place]);
  }

  override changes(conversationId: number): void {
    this.isStated = true;
    checkOwned(this.run.owned.has(`counters:${conversationId}`), conversationId);
  }

  override changesUnowned(): void {
    this.isStated = true;
  }

  override ownRow(table: OwnedTable, id: number): Awaitable<void> {
    return this.run.transaction.own(this.run, table, id);
  }

  override index(message: IndexedMessage, text: string | null): Promise<void> {
    return reindex(this, message, text);
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
