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
  type Statement,
  type Value,
} from "../sql.ts";
import type { Rows } from "./connection.ts";
import { reindex } from "./search.ts";
import type { UnitRun } from "./transaction.ts";
import { type Batch, textList, type Unit } from "./unit.ts";

const textOf = (sql: Statement) => (typeof sql === "string" ? sql : sql.postgres);

/** The port for a call of a method, in a unit that runs. */
export class Call implements Unit {
  private readonly run: UnitRun;
  /** Whether the method has stated what it changes. */
  private isStated = false;

  constructor(run: UnitRun) {
    this.run = run;
  }

  next(): Unit {
    return new Call(this.run);
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

  async write<Row = never>(sql: Statement, values: readonly unknown[] = []): Promise<Rows<Row>> {
    const text = textOf(sql);
    this.check(text);
    return this.run.write<Row>(text, values);
  }

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

  async getOwned<Row extends Place>(
    place: string,
    sql: string,
    value: Value,
    also?: OwnedTable,
  ): Promise<Row | null> {
    if (this.run.transaction.options.readOnly) return this.get<Row>(sql, [value]);
    // Owned first: what is read before may be outdated by the time the unit owns the conversation.
    const found = await this.get<Place>(place, [value]);
    if (!found) return null;
    await this.own(found.conversation_id);
    if (also) await this.ownRow(also, Number(value));
    return this.get<Row>(sql, [value]);
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

  emit(change: Change): void {
    this.run.emitted.push(change);
  }
}
