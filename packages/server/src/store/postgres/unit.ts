import type { Change } from "../../changes/change.ts";
import type { Awaitable } from "../awaitable.ts";
import type { Sql, Statement } from "../sql.ts";
import type { ReadTx, WriteTx } from "../store.ts";
import type { Rows } from "./connection.ts";

/** A running unit of work, as the methods of the store use it. */
export interface Unit extends Sql {
  all<Row>(sql: Statement, values?: readonly unknown[]): Promise<Row[]>;
  get<Row>(sql: Statement, values?: readonly unknown[]): Promise<Row | null>;
  /** Runs a statement that changes something, and returns the rows of RETURNING with their count. */
  write<Row = never>(sql: Statement, values?: readonly unknown[]): Promise<Rows<Row>>;
  /** Makes a call in one statement with the calls of other units at the same time. */
  together<Call, Result>(batch: Batch<Call, Result>, call: Call): Promise<Result>;
  /** The port for another call of a method in the same unit. */
  next(): Unit;
  /** Hands a change to subscribers once the unit has committed. */
  emit(change: Change): void;
}

/** One statement for many calls. */
export interface Batch<Call, Result> {
  readonly sql: string;
  /** Whether it changes something. */
  readonly writes: boolean;
  readonly values: (calls: readonly Call[]) => unknown[];
  /** The results of the calls, in their order. */
  readonly results: (rows: readonly never[], calls: readonly Call[]) => Result[];
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

/** An array of ids or UUIDs as a PostgreSQL literal. */
export const list = (values: readonly (number | string)[]) => `{${values.join(",")}}`;

/** An array of any texts as a PostgreSQL literal. */
export const textList = (values: readonly (number | string | null)[]) =>
  list(values.map(quotedText));

const quotedText = (value: number | string | null) =>
  typeof value === "string" ? `"${value.replace(/["\\]/g, "\\$&")}"` : (value ?? "NULL");
