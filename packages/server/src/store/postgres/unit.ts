import type { Change } from "../../changes/change.ts";
import type { ReadTx, WriteTx } from "../store.ts";
import type { Rows } from "./connection.ts";

/** A unit of work under way: what its reads and writes are made of. */
export interface Unit {
  all<Row>(sql: string, ...values: unknown[]): Promise<Row[]>;
  get<Row>(sql: string, ...values: unknown[]): Promise<Row | null>;
  /** A statement that changes something. */
  change<Row = never>(sql: string, ...values: unknown[]): Promise<Rows<Row>>;
  /** What many units of one moment ask, or change, by a single statement. */
  together<Call, Result>(batch: Batch<Call, Result>, call: Call): Promise<Result>;
  /**
   * From here on no other unit, on whichever node, changes this conversation until this one is over,
   * and what this one reads of it is the latest. A unit that only reads owns nothing.
   */
  own(conversationId: number): Promise<void>;
  /** Of these conversations, those that it owns from here on: others are left to whoever has them. */
  ownFree(conversationIds: readonly number[]): Promise<number[]>;
  /**
   * The same for a turn, for an account (an agent's spending, a person's own counter) and for the
   * counter of names, in this order and after the conversation.
   */
  ownRow(table: "turns" | "accounts" | "name_counter", id: number): Promise<void>;
  /** Hands a change to subscribers once the unit has committed. */
  emit(change: Change): void;
}

/** What many calls are sent as, and how the answer is dealt out again. */
export interface Batch<Call, Result> {
  readonly sql: string;
  /** Whether it changes something. */
  readonly writes: boolean;
  readonly values: (calls: readonly Call[]) => unknown[];
  readonly results: (rows: readonly never[], calls: readonly Call[]) => Result[];
}

type Method = (...values: never[]) => unknown;

/** Methods of the store's interface, each told which unit it works for. */
export type Methods<Names extends keyof WriteTx> = {
  [Name in Names]: WriteTx[Name] extends (...values: infer Values) => infer Result
    ? (unit: Unit, ...values: Values) => Promise<Awaited<Result>>
    : never;
};

export type ReadMethods = Methods<keyof ReadTx>;
export type WriteMethods = Methods<Exclude<keyof WriteTx, "emit" | "signal">>;

/** Makes the objects units get as `tx`: the same methods for all, bound to one unit each. */
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
      return call(this.unit, ...values);
    };
    Object.defineProperty(Bound.prototype, name, { value: bound });
  }
  return (unit) => new Bound(unit) as Tx;
}

/** A list as PostgreSQL reads it, of ids or of UUIDs. */
export const list = (values: readonly (number | string)[]) => `{${values.join(",")}}`;

/** The database's clock: the only one that all nodes share. */
export const NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
